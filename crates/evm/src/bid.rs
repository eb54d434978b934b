use crate::{
    GasPrice,
    gate::gate,
    price::{Base, Quote},
};

/// What a transaction pays for a unit of gas, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bid {
    /// The most that it pays.
    pub(crate) max_fee: u128,
    /// What of that is for whoever mines it.
    pub(crate) tip: u128,
    /// The chain has no base fee, and the transaction one price, which is both.
    pub(crate) is_legacy: bool,
}

impl Bid {
    /// What to pay at this price: enough for some blocks in which it rises, and never more than the
    /// cap.
    pub(crate) fn new(quote: &Quote, cap: GasPrice) -> Self {
        let most = match quote.base {
            Base::Fee(base) => base.saturating_mul(2).saturating_add(quote.tip),
            Base::None => quote.price,
            Base::Unknown => quote.price.saturating_mul(2),
        };
        let max_fee = most.min(cap.wei());
        let tip = quote.tip.min(max_fee);
        Self { max_fee, tip, is_legacy: quote.base == Base::None }
    }
}

/// What to pay so that a transaction takes the place of the best paid one with its nonce, which has
/// this max fee and this tip. `None`: the cap or the gate forbids it.
///
/// Nodes ask for a tenth or an eighth more, of both.
pub(crate) fn raise(best: (u128, u128), quote: &Quote, cap: GasPrice) -> Option<Bid> {
    let today = gate(quote, cap).ok()?;
    let max_fee = today.max_fee.max(an_eighth_more(best.0));
    let tip = match today.is_legacy {
        true => max_fee,
        false => today.tip.max(an_eighth_more(best.1)),
    };
    (max_fee <= cap.wei()).then_some(Bid { max_fee, tip, ..today })
}

fn an_eighth_more(fee: u128) -> u128 {
    fee.saturating_add(fee.div_ceil(8).max(1))
}

/// Whether a transaction that pays this max fee would be mined at this price.
pub(crate) fn would_be_taken(max_fee: u128, quote: &Quote) -> bool {
    max_fee >= quote.price
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::quotes;
    use proptest::prelude::*;

    const GWEI: u128 = 1_000_000_000;

    fn quote(base_fee: u128, tip: u128) -> Quote {
        Quote::of_base(base_fee, tip)
    }

    proptest! {
        #[test]
        fn no_bid_is_above_the_cap_nor_below_the_price(quote in quotes(), cap in any::<u128>()) {
            let cap = GasPrice::from_wei(cap);
            if let Ok(bid) = gate(&quote, cap) {
                prop_assert!(bid.tip <= bid.max_fee && bid.max_fee <= cap.wei());
                prop_assert!(would_be_taken(bid.max_fee, &quote));
            }
        }

        #[test]
        fn a_raise_is_taken_by_every_node_and_by_the_cap(
            quote in quotes(),
            cap in 0..u128::MAX / 2,
            best_max in 0..u128::MAX / 2,
            best_tip in any::<prop::sample::Index>(),
        ) {
            let best = (best_max, best_tip.index(usize::MAX) as u128 % (best_max + 1));
            let cap = GasPrice::from_wei(cap);
            let Some(bid) = raise(best, &quote, cap) else { return Ok(()) };
            let today = gate(&quote, cap).unwrap();
            prop_assert!(bid.tip <= bid.max_fee && bid.max_fee <= cap.wei());
            prop_assert!(bid.max_fee >= today.max_fee && bid.tip >= today.tip);
            prop_assert!(!bid.is_legacy || bid.tip == bid.max_fee);
            for (new, old) in [(bid.max_fee, best.0), (bid.tip, best.1)] {
                prop_assert!(new - old >= old / 8 && new > old);
                prop_assert!((new - old).saturating_mul(8) >= old);
            }
        }

        #[test]
        fn no_raise_only_where_the_cap_forbids_it(
            base_fee in 1..1_000_000u128, tip in 1..1_000u128, max in 1..4_000_000u128, cap in 1..4_000_000u128,
        ) {
            let (quote, cap) = (quote(base_fee, tip), GasPrice::from_wei(cap));
            if raise((max, 1), &quote, cap).is_none() {
                prop_assert!(quote.price >= cap.wei() || max + max.div_ceil(8) > cap.wei());
            }
        }
    }

    #[test]
    fn a_bid_has_room_for_a_base_fee_that_doubles() {
        let cap = GasPrice::from_wei(200 * GWEI);
        let bid = Bid::new(&quote(30 * GWEI, 2 * GWEI), cap);
        assert_eq!(bid, Bid { max_fee: 62 * GWEI, tip: 2 * GWEI, is_legacy: false });
        let bid = Bid::new(&quote(150 * GWEI, 2 * GWEI), cap);
        assert_eq!(bid, Bid { max_fee: 200 * GWEI, tip: 2 * GWEI, is_legacy: false });
    }

    #[test]
    fn a_chain_without_a_base_fee_is_paid_its_price() {
        let bid = Bid::new(&Quote::without_base(7 * GWEI), GasPrice::from_wei(200 * GWEI));
        assert_eq!(bid, Bid { max_fee: 7 * GWEI, tip: 7 * GWEI, is_legacy: true });
        let raised = raise(
            (7 * GWEI, 7 * GWEI),
            &Quote::without_base(7 * GWEI),
            GasPrice::from_wei(200 * GWEI),
        );
        let expected = 7 * GWEI + 7 * GWEI / 8;
        assert_eq!(raised, Some(Bid { max_fee: expected, tip: expected, is_legacy: true }));
    }

    #[test]
    fn where_only_the_oracle_is_heard_there_is_room_for_a_price_that_doubles() {
        let quote = Quote::alone(60 * GWEI);
        let at_cap = |gwei: u128| Bid::new(&quote, GasPrice::from_wei(gwei * GWEI)).max_fee / GWEI;
        assert_eq!((at_cap(200), at_cap(100)), (120, 100));
    }

    #[test]
    fn a_raise_is_rounded_up() {
        let raised = raise((17, 1), &quote(1, 1), GasPrice::from_wei(100)).unwrap();
        assert_eq!((raised.max_fee, raised.tip), (20, 2));
        assert_eq!(raise((17, 1), &quote(1, 1), GasPrice::from_wei(20)), Some(raised));
        assert_eq!(raise((17, 1), &quote(1, 1), GasPrice::from_wei(19)), None);
    }

    #[test]
    fn there_is_no_raise_while_the_gate_is_closed() {
        let cap = GasPrice::from_wei(200 * GWEI);
        assert_eq!(raise((GWEI, GWEI), &quote(199 * GWEI, GWEI), cap), None);
        assert!(raise((GWEI, GWEI), &quote(198 * GWEI, GWEI), cap).is_some());
    }

    #[test]
    fn what_pays_less_than_the_price_would_not_be_taken() {
        let quote = quote(10, 2);
        assert!(would_be_taken(12, &quote));
        assert!(!would_be_taken(11, &quote));
    }
}
