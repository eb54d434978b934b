use std::fmt;

/// The current price of a unit of gas, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GasQuote {
    /// The part that is burned.
    pub(crate) base: BaseFee,
    /// The part that goes to the block producer.
    pub(crate) tip: u128,
    /// The sum of both.
    pub(crate) price: u128,
    /// Where the price was read.
    pub(crate) source: QuoteSource,
}

/// The base fee of the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BaseFee {
    /// This many wei.
    Fee(u128),
    /// The chain has no base fee; its transactions have a single price.
    None,
    /// The node did not report it.
    Unknown,
}

/// Where a gas price was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteSource {
    Node,
    Oracle,
}

impl GasQuote {
    /// A node's price on a chain with this base fee.
    pub(crate) fn with_base_fee(base_fee: u128, tip: u128) -> Self {
        let price = base_fee.saturating_add(tip);
        Self { base: BaseFee::Fee(base_fee), tip, price, source: QuoteSource::Node }
    }

    /// A node's price on a chain without a base fee.
    pub(crate) fn without_base_fee(price: u128) -> Self {
        Self { base: BaseFee::None, tip: price, price, source: QuoteSource::Node }
    }

    /// An oracle's price when the node reports none.
    pub(crate) fn oracle_only(price: u128) -> Self {
        Self { base: BaseFee::Unknown, tip: price, price, source: QuoteSource::Oracle }
    }

    /// The oracle's price on the chain of this quote, but at least one wei above the base fee.
    pub(crate) fn with_oracle_price(self, price: u128) -> Self {
        let quote = match self.base {
            BaseFee::Fee(base_fee) => {
                Self::with_base_fee(base_fee, price.saturating_sub(base_fee).max(1))
            }
            BaseFee::None => Self::without_base_fee(price),
            BaseFee::Unknown => Self::oracle_only(price),
        };
        Self { source: QuoteSource::Oracle, ..quote }
    }
}

impl fmt::Display for QuoteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Node => "node",
            Self::Oracle => "oracle",
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Quotes of every kind.
    pub(crate) fn quotes() -> impl Strategy<Value = GasQuote> {
        (any::<u128>(), any::<u128>(), 0..4).prop_map(|(a, b, kind)| match kind {
            0 => GasQuote::with_base_fee(a, b),
            1 => GasQuote::without_base_fee(a),
            2 => GasQuote::oracle_only(a),
            _ => GasQuote::with_base_fee(a, 1).with_oracle_price(b),
        })
    }

    #[test]
    fn oracle_price_above_the_base_fee_is_the_tip() {
        let quote = GasQuote::with_base_fee(30, 2).with_oracle_price(45);
        let expected =
            GasQuote { base: BaseFee::Fee(30), tip: 15, price: 45, source: QuoteSource::Oracle };
        assert_eq!(quote, expected);
        for low in [0, 29, 30] {
            let quote = GasQuote::with_base_fee(30, 2).with_oracle_price(low);
            assert_eq!((quote.tip, quote.price), (1, 31));
        }
    }

    #[test]
    fn oracle_price_replaces_the_price_without_a_base_fee() {
        let quote = GasQuote::without_base_fee(30).with_oracle_price(45);
        assert_eq!(
            quote,
            GasQuote { source: QuoteSource::Oracle, ..GasQuote::without_base_fee(45) }
        );
    }
}
