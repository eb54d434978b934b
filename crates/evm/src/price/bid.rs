use alloy_primitives::U256;

use super::{
    quote::{BaseFee, GasQuote},
    raise::an_eighth_more,
};
use crate::values::GasPrice;

/// What a transaction offers for a unit of gas, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bid {
    /// The highest price that it pays.
    pub(crate) max_fee: u128,
    /// The part of it that goes to the block producer.
    pub(crate) tip: u128,
    /// The chain has no base fee: the transaction has one price, which is both.
    pub(crate) is_legacy: bool,
}

impl Bid {
    /// The bid at this price: twice the base fee and the tip, so that it stays valid while the base
    /// fee rises, and never more than the cap. A bid that could not be raised below the cap is the cap, where
    /// it is only a limit.
    pub(crate) fn new(quote: &GasQuote, cap: GasPrice) -> Self {
        let max_fee = match quote.base {
            BaseFee::Fee(base) => base.saturating_mul(2).saturating_add(quote.tip),
            BaseFee::None => quote.price,
            BaseFee::Unknown => quote.price.saturating_mul(2),
        };
        let is_limit = quote.base != BaseFee::None;
        let max_fee = match an_eighth_more(max_fee) > cap.wei() && is_limit {
            true => cap.wei(),
            false => max_fee.min(cap.wei()),
        };
        let tip = quote.tip.min(max_fee);
        Self { max_fee, tip, is_legacy: quote.base == BaseFee::None }
    }

    /// The most that this much gas may cost.
    pub(crate) fn cost(&self, gas_limit: u64) -> U256 {
        // Cannot overflow: 64 and 128 bits have a product of at most 192 bits.
        U256::from(gas_limit) * U256::from(self.max_fee)
    }
}

/// Whether a transaction with this max fee can be mined at this price.
pub(crate) fn covers_price(max_fee: u128, quote: &GasQuote) -> bool {
    max_fee >= quote.price
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
