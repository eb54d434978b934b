use alloy_primitives::U256;
use grid_batch_withdrawals::NewSignedTransaction;

use super::{
    gate::price_gate,
    quote::{BaseFee, GasQuote},
};
use crate::values::GasPrice;

/// What a transaction offers per unit of gas, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bid {
    /// The highest price that it may pay.
    pub(crate) max_fee: u128,
    /// The part of the price that goes to the block producer.
    pub(crate) tip: u128,
    /// Whether the chain has no base fee, so that the transaction has a single price, which is both `max_fee` and
    /// `tip`.
    pub(crate) is_legacy: bool,
}

impl Bid {
    /// The bid at this price: twice the base fee plus the tip, so that it stays valid while the base fee rises, but
    /// never more than the cap. If such a bid could not be raised later without exceeding the cap, it is the cap
    /// itself, unless the chain has no base fee.
    pub(crate) fn new(quote: &GasQuote, cap: GasPrice) -> Self {
        let max_fee = match quote.base {
            BaseFee::Fee(base) => base.saturating_mul(2).saturating_add(quote.tip),
            BaseFee::None => quote.price,
            BaseFee::Unknown => quote.price.saturating_mul(2),
        };
        let is_limit = quote.base != BaseFee::None;
        let max_fee = if an_eighth_more(max_fee) > cap.wei() && is_limit {
            cap.wei()
        } else {
            max_fee.min(cap.wei())
        };
        let tip = quote.tip.min(max_fee);
        Self { max_fee, tip, is_legacy: quote.base == BaseFee::None }
    }

    /// The maximum cost of this much gas.
    pub(crate) fn cost(&self, gas_limit: u64) -> U256 {
        // Cannot overflow: 64 and 128 bits have a product of at most 192 bits.
        U256::from(gas_limit) * U256::from(self.max_fee)
    }
}

/// Whether a transaction with this max fee can be mined at this price.
pub(crate) fn covers_price(max_fee: u128, quote: &GasQuote) -> bool {
    max_fee >= quote.price
}

/// What a signed transaction offers per unit of gas, in wei.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fees {
    pub(crate) max_fee: u128,
    pub(crate) tip: u128,
}

impl Fees {
    pub(crate) fn of(signed: &NewSignedTransaction) -> Self {
        Self { max_fee: signed.max_fee, tip: signed.tip }
    }
}

/// The bid of a transaction that replaces those with the same nonce, of which the highest max fee and the highest tip
/// are given. `None`: the cap or the price gate forbids it.
///
/// Nodes require that both fees be a tenth or an eighth higher.
pub(crate) fn raise_bid(highest: Fees, quote: &GasQuote, cap: GasPrice) -> Option<Bid> {
    let current = price_gate(quote, cap).ok()?;
    let max_fee = current.max_fee.max(an_eighth_more(highest.max_fee));
    let tip =
        if current.is_legacy { max_fee } else { current.tip.max(an_eighth_more(highest.tip)) };
    (max_fee <= cap.wei()).then_some(Bid { max_fee, tip, ..current })
}

/// The minimum that a replacement of a transaction with this fee must offer.
fn an_eighth_more(fee: u128) -> u128 {
    fee.saturating_add(fee.div_ceil(8).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::price::quote::tests::quotes;

    const GWEI: u128 = 1_000_000_000;

    #[test]
    fn bid_covers_twice_the_base_fee() {
        let cap = GasPrice::from_wei(200 * GWEI);
        let bid = Bid::new(&GasQuote::with_base_fee(30 * GWEI, 2 * GWEI), cap);
        assert_eq!(bid, Bid { max_fee: 62 * GWEI, tip: 2 * GWEI, is_legacy: false });
        let bid = Bid::new(&GasQuote::with_base_fee(150 * GWEI, 2 * GWEI), cap);
        assert_eq!(bid, Bid { max_fee: 200 * GWEI, tip: 2 * GWEI, is_legacy: false });
    }

    #[test]
    fn bid_without_a_base_fee_is_the_price() {
        let cap = GasPrice::from_wei(200 * GWEI);
        let bid = Bid::new(&GasQuote::without_base_fee(7 * GWEI), cap);
        assert_eq!(bid, Bid { max_fee: 7 * GWEI, tip: 7 * GWEI, is_legacy: true });
    }

    #[test]
    fn bid_covers_twice_the_price_of_an_oracle() {
        let quote = GasQuote::oracle_only(60 * GWEI);
        let at_cap = |gwei: u128| Bid::new(&quote, GasPrice::from_wei(gwei * GWEI)).max_fee / GWEI;
        assert_eq!((at_cap(200), at_cap(100)), (120, 100));
    }

    #[test]
    fn max_fee_below_the_price_does_not_cover_it() {
        let quote = GasQuote::with_base_fee(10, 2);
        assert!(covers_price(12, &quote));
        assert!(!covers_price(11, &quote));
    }

    fn quote(base_fee: u128, tip: u128) -> GasQuote {
        GasQuote::with_base_fee(base_fee, tip)
    }

    fn fees(max_fee: u128, tip: u128) -> Fees {
        Fees { max_fee, tip }
    }

    proptest! {
        #[test]
        fn raise_is_enough_for_nodes_and_below_the_cap(
            quote in quotes(),
            cap in 0..u128::MAX / 2,
            best_max in 0..u128::MAX / 2,
            best_tip in any::<prop::sample::Index>(),
        ) {
            let best = fees(best_max, best_tip.index(usize::MAX) as u128 % (best_max + 1));
            let cap = GasPrice::from_wei(cap);
            let Some(bid) = raise_bid(best, &quote, cap) else { return Ok(()) };
            let current = price_gate(&quote, cap).unwrap();
            prop_assert!(bid.tip <= bid.max_fee && bid.max_fee <= cap.wei());
            prop_assert!(bid.max_fee >= current.max_fee && bid.tip >= current.tip);
            prop_assert!(!bid.is_legacy || bid.tip == bid.max_fee);
            for (new, old) in [(bid.max_fee, best.max_fee), (bid.tip, best.tip)] {
                prop_assert!(new - old >= old / 8 && new > old);
                prop_assert!((new - old).saturating_mul(8) >= old);
            }
        }

        #[test]
        fn only_the_cap_forbids_a_raise(
            base_fee in 1..1_000_000u128, tip in 1..1_000u128, max in 1..4_000_000u128, cap in 1..4_000_000u128,
        ) {
            let (quote, cap) = (quote(base_fee, tip), GasPrice::from_wei(cap));
            if raise_bid(fees(max, 1), &quote, cap).is_none() {
                prop_assert!(quote.price >= cap.wei() || max + max.div_ceil(8) > cap.wei());
            }
        }
    }

    #[test]
    fn raise_without_a_base_fee_raises_the_price() {
        let cap = GasPrice::from_wei(200 * GWEI);
        let raised =
            raise_bid(fees(7 * GWEI, 7 * GWEI), &GasQuote::without_base_fee(7 * GWEI), cap);
        let expected = 7 * GWEI + 7 * GWEI / 8;
        assert_eq!(raised, Some(Bid { max_fee: expected, tip: expected, is_legacy: true }));
    }

    #[test]
    fn raise_is_rounded_up() {
        let raised = raise_bid(fees(17, 1), &quote(1, 1), GasPrice::from_wei(100)).unwrap();
        assert_eq!((raised.max_fee, raised.tip), (20, 2));
        assert_eq!(raise_bid(fees(17, 1), &quote(1, 1), GasPrice::from_wei(20)), Some(raised));
        assert_eq!(raise_bid(fees(17, 1), &quote(1, 1), GasPrice::from_wei(19)), None);
    }

    #[test]
    fn closed_price_gate_forbids_a_raise() {
        let cap = GasPrice::from_wei(200 * GWEI);
        assert_eq!(raise_bid(fees(GWEI, GWEI), &quote(199 * GWEI, GWEI), cap), None);
        assert!(raise_bid(fees(GWEI, GWEI), &quote(198 * GWEI, GWEI), cap).is_some());
    }
}
