use alloy_primitives::{Address, U256, utils::format_ether};
use thiserror::Error;

use crate::{
    GasPrice,
    bid::Bid,
    price::{Quote, Source},
};

/// Why nothing is signed now. It is no fault, and passes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Closed {
    /// Gas is too dear.
    #[error("the gas price is {price}, not below the cap of {cap} (by the {by})")]
    Price { price: GasPrice, cap: GasPrice, by: Source },
    /// The account cannot pay for the gas.
    #[error(
        "{account} has {} of the chain's coin, and the gas may cost {}",
        coins(*balance),
        coins(*needed)
    )]
    Funds { account: Address, balance: U256, needed: U256 },
}

/// Wei in the chain's coin, which has 18 digits behind the point.
fn coins(wei: U256) -> String {
    format_ether(wei).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What to pay at this price, where it is below the cap.
pub(crate) fn gate(quote: &Quote, cap: GasPrice) -> Result<Bid, Closed> {
    let price = GasPrice::from_wei(quote.price);
    if price >= cap {
        return Err(Closed::Price { price, cap, by: quote.source });
    }
    Ok(Bid::new(quote, cap))
}

/// Whether an account with this balance can pay what the gas costs at most.
pub(crate) fn funds_gate(
    account: Address,
    balance: U256,
    gas_limit: u64,
    bid: &Bid,
) -> Result<(), Closed> {
    // 64 and 128 bits make no more than 192.
    let needed = U256::from(gas_limit) * U256::from(bid.max_fee);
    if balance < needed {
        return Err(Closed::Funds { account, balance, needed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::address;

    const GWEI: u128 = 1_000_000_000;

    #[test]
    fn a_price_is_let_through_only_below_the_cap() {
        let cap: GasPrice = "200".parse().unwrap();
        let at = |wei: u128| gate(&Quote::of_base(wei - GWEI, GWEI), cap);
        assert_eq!(at(200 * GWEI - 1).unwrap().max_fee, 200 * GWEI);
        for price in [200 * GWEI, 200 * GWEI + 1] {
            let closed = Closed::Price { price: GasPrice::from_wei(price), cap, by: Source::Node };
            assert_eq!(at(price), Err(closed));
        }
    }

    #[test]
    fn a_closed_gate_says_the_price_and_the_cap() {
        let cap: GasPrice = "200".parse().unwrap();
        let closed = gate(&Quote::of_base(200 * GWEI, GWEI), cap).unwrap_err();
        assert_eq!(
            closed.to_string(),
            "the gas price is 201 gwei, not below the cap of 200 gwei (by the node)"
        );
        let closed = gate(&Quote::alone(300 * GWEI), cap).unwrap_err();
        assert!(
            closed.to_string().ends_with("300 gwei, not below the cap of 200 gwei (by the oracle)")
        );
    }

    #[test]
    fn an_account_must_have_what_the_gas_may_cost() {
        let account = address!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
        let bid = Bid { max_fee: 60 * GWEI, tip: GWEI, is_legacy: false };
        let needed = U256::from(6_000_000 * GWEI);
        assert_eq!(funds_gate(account, needed, 100_000, &bid), Ok(()));
        let closed = funds_gate(account, needed - U256::ONE, 100_000, &bid).unwrap_err();
        assert_eq!(
            closed.to_string(),
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed has 0.005999999999999999 of the chain's \
             coin, and the gas may cost 0.006"
        );
        let dearest = Bid { max_fee: u128::MAX, tip: 0, is_legacy: false };
        assert!(funds_gate(account, U256::ZERO, u64::MAX, &dearest).is_err());
    }
}
