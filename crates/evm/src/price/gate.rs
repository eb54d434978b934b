use alloy_primitives::{Address, U256};
use grid_batch_withdrawals::in_unit;
use thiserror::Error;

use super::{
    bid::Bid,
    quote::{BaseFee, GasQuote, QuoteSource},
};
use crate::values::GasPrice;

/// Why nothing is signed now. The withdrawal is parked until the gate is open.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ClosedGate {
    /// The gas price is too high.
    #[error("the gas price is {price}, not below the cap of {cap} (source: {source_name})")]
    Price { price: GasPrice, cap: GasPrice, source_name: QuoteSource },
    /// The base fee alone is too high.
    #[error(
        "the base fee is {base_fee}, not below the cap of {cap}; with the tip, the gas price is {price} \
         (source: {source_name})"
    )]
    BaseFee { base_fee: GasPrice, price: GasPrice, cap: GasPrice, source_name: QuoteSource },
    /// The account cannot pay for the gas.
    #[error(
        "{account} has {} coins of the chain; its transaction may cost {}",
        coins(*balance),
        coins(*needed)
    )]
    Funds { account: Address, balance: U256, needed: U256 },
}

/// Wei as a number of the chain's coins, with up to 18 decimal places.
fn coins(wei: U256) -> String {
    in_unit(wei, 18)
}

/// The bid at this price, if it is below the cap.
pub(crate) fn price_gate(quote: &GasQuote, cap: GasPrice) -> Result<Bid, ClosedGate> {
    let price = GasPrice::from_wei(quote.price);
    let source_name = quote.source;
    match quote.base {
        BaseFee::Fee(base_fee) if base_fee >= cap.wei() => {
            let base_fee = GasPrice::from_wei(base_fee);
            Err(ClosedGate::BaseFee { base_fee, price, cap, source_name })
        }
        _ if price >= cap => Err(ClosedGate::Price { price, cap, source_name }),
        _ => Ok(Bid::new(quote, cap)),
    }
}

/// Checks that an account with this balance can pay the highest cost of a transaction.
pub(crate) fn funds_gate(account: Address, balance: U256, needed: U256) -> Result<(), ClosedGate> {
    if balance >= needed { Ok(()) } else { Err(ClosedGate::Funds { account, balance, needed }) }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::address;
    use proptest::prelude::*;

    use super::*;
    use crate::price::{bid::covers_price, quote::tests::quotes};

    const GWEI: u128 = 1_000_000_000;

    proptest! {
        #[test]
        fn bid_is_between_the_price_and_the_cap(quote in quotes(), cap in any::<u128>()) {
            let cap = GasPrice::from_wei(cap);
            if let Ok(bid) = price_gate(&quote, cap) {
                prop_assert!(bid.tip <= bid.max_fee && bid.max_fee <= cap.wei());
                prop_assert!(covers_price(bid.max_fee, &quote));
            }
        }
    }

    #[test]
    fn price_gate_is_open_only_below_the_cap() {
        let cap: GasPrice = "200".parse().unwrap();
        let at = |wei: u128| price_gate(&GasQuote::with_base_fee(wei - GWEI, GWEI), cap);
        assert_eq!(at(200 * GWEI - 1).unwrap().max_fee, 200 * GWEI);
        // The base fee alone is below the cap.
        for price in [200 * GWEI, 200 * GWEI + 1] {
            let closed = ClosedGate::Price {
                price: GasPrice::from_wei(price),
                cap,
                source_name: QuoteSource::Node,
            };
            assert_eq!(at(price), Err(closed));
        }
    }

    #[test]
    fn closed_gate_reports_the_price_and_the_cap() {
        let cap: GasPrice = "200".parse().unwrap();
        let closed = price_gate(&GasQuote::with_base_fee(199 * GWEI, GWEI), cap).unwrap_err();
        assert_eq!(
            closed.to_string(),
            "the gas price is 200 gwei, not below the cap of 200 gwei (source: node)"
        );
        let closed = price_gate(&GasQuote::with_base_fee(200 * GWEI, GWEI), cap).unwrap_err();
        assert_eq!(
            closed.to_string(),
            "the base fee is 200 gwei, not below the cap of 200 gwei; with the tip, the gas price is \
             201 gwei (source: node)"
        );
        let closed = price_gate(&GasQuote::oracle_only(300 * GWEI), cap).unwrap_err();
        assert!(
            closed
                .to_string()
                .ends_with("300 gwei, not below the cap of 200 gwei (source: oracle)")
        );
    }

    #[test]
    fn funds_gate_requires_the_highest_cost() {
        let account = address!("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
        let bid = Bid { max_fee: 60 * GWEI, tip: GWEI, is_legacy: false };
        let needed = U256::from(6_000_000 * GWEI);
        assert_eq!(funds_gate(account, needed, bid.cost(100_000)), Ok(()));
        let closed = funds_gate(account, needed - U256::ONE, bid.cost(100_000)).unwrap_err();
        assert_eq!(
            closed.to_string(),
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed has 0.005999999999999999 coins of \
             the chain; its transaction may cost 0.006"
        );
        let highest = Bid { max_fee: u128::MAX, tip: 0, is_legacy: false };
        assert!(funds_gate(account, U256::ZERO, highest.cost(u64::MAX)).is_err());
    }
}
