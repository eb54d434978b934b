use std::fmt;

/// What a unit of gas costs now, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote {
    /// What of it goes to nobody.
    pub(crate) base: Base,
    /// What is for whoever mines.
    pub(crate) tip: u128,
    /// Both together.
    pub(crate) price: u128,
    /// Who says so.
    pub(crate) source: Source,
}

/// The base fee of the block that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// It is so much.
    Fee(u128),
    /// The chain has none, and its transactions have one price.
    None,
    /// Nobody said.
    Unknown,
}

/// Who says what gas costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Node,
    Oracle,
}

impl Quote {
    /// Of a node on a chain with this base fee.
    pub(crate) fn of_base(base_fee: u128, tip: u128) -> Self {
        let price = base_fee.saturating_add(tip);
        Self { base: Base::Fee(base_fee), tip, price, source: Source::Node }
    }

    /// Of a node on a chain without a base fee.
    pub(crate) fn without_base(price: u128) -> Self {
        Self { base: Base::None, tip: price, price, source: Source::Node }
    }

    /// Of an oracle, with no word of the node.
    pub(crate) fn alone(price: u128) -> Self {
        Self { base: Base::Unknown, tip: price, price, source: Source::Oracle }
    }

    /// The same chain at an oracle's price. What is not above the base fee would buy nothing.
    pub(crate) fn at(self, price: u128) -> Self {
        let quote = match self.base {
            Base::Fee(base_fee) => Self::of_base(base_fee, price.saturating_sub(base_fee).max(1)),
            Base::None => Self::without_base(price),
            Base::Unknown => Self::alone(price),
        };
        Self { source: Source::Oracle, ..quote }
    }
}

impl fmt::Display for Source {
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

    /// Every kind of quote.
    pub(crate) fn quotes() -> impl Strategy<Value = Quote> {
        (any::<u128>(), any::<u128>(), 0..4).prop_map(|(a, b, kind)| match kind {
            0 => Quote::of_base(a, b),
            1 => Quote::without_base(a),
            2 => Quote::alone(a),
            _ => Quote::of_base(a, 1).at(b),
        })
    }

    #[test]
    fn an_oracles_price_is_paid_as_a_tip_above_the_base_fee() {
        let quote = Quote::of_base(30, 2).at(45);
        let expected = Quote { base: Base::Fee(30), tip: 15, price: 45, source: Source::Oracle };
        assert_eq!(quote, expected);
        for low in [0, 29, 30] {
            let quote = Quote::of_base(30, 2).at(low);
            assert_eq!((quote.tip, quote.price), (1, 31));
        }
    }

    #[test]
    fn an_oracles_price_is_the_price_of_a_chain_without_a_base_fee() {
        let quote = Quote::without_base(30).at(45);
        assert_eq!(quote, Quote { source: Source::Oracle, ..Quote::without_base(45) });
    }
}
