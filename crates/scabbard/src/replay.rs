use std::collections::HashSet;

use grid_batch_core::ItemId;

/// How much of a service's history a subscription has shown.
///
/// A node reads its receipts in pages of 64. The first page is right; with more pages, the replay omits some receipts
/// and repeats others. It is therefore whole only if it has fewer transactions than a page: with exactly 64, there may
/// be a second page that only repeats.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The distinct transactions since the first one of the service. `None`: they are not known, or too many.
    transactions: Option<HashSet<ItemId>>,
    /// Whether the replay ended with fewer transactions than a page.
    is_whole: bool,
}

impl Replay {
    const PAGE: usize = 64;

    /// A subscription to all events of the service.
    pub(crate) fn from_start() -> Self {
        Self { transactions: Some(HashSet::new()), is_whole: false }
    }

    /// A subscription to events after another one.
    pub(crate) fn partial() -> Self {
        Self { transactions: None, is_whole: false }
    }

    pub(crate) fn receive(&mut self, transaction: ItemId) {
        if let Some(transactions) = &mut self.transactions {
            transactions.insert(transaction);
        }
        self.transactions.take_if(|transactions| transactions.len() >= Self::PAGE);
    }

    /// Records that the node has sent all of the replay.
    pub(crate) fn end(&mut self) {
        self.is_whole |= self.transactions.is_some();
    }

    /// Whether the subscription has shown every transaction of the service until now.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The number of transactions, if they are all known and fewer than a page.
    pub(crate) fn len(&self) -> Option<usize> {
        self.transactions.as_ref().map(HashSet::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replay of this many transactions, each of which is sent twice.
    fn replay_of(count: u8) -> Replay {
        let mut replay = Replay::from_start();
        for number in (0..count).chain(0..count) {
            replay.receive(ItemId::from_bytes([number; 64]));
        }
        replay
    }

    #[test]
    fn replay_is_whole_if_it_ended_within_the_first_page() {
        for (count, is_whole) in [(0, true), (1, true), (63, true), (64, false), (65, false)] {
            let mut replay = replay_of(count);
            assert!(!replay.is_whole(), "{count}: it may continue");
            replay.end();
            assert_eq!(replay.is_whole(), is_whole, "{count}");
        }
    }

    #[test]
    fn live_events_do_not_make_a_whole_replay_partial() {
        let mut replay = replay_of(63);
        replay.end();
        for number in 63..200 {
            replay.receive(ItemId::from_bytes([number; 64]));
        }
        assert_eq!((replay.is_whole(), replay.len()), (true, None));
    }

    #[test]
    fn replay_after_an_event_is_never_whole() {
        let mut replay = Replay::partial();
        replay.end();
        assert!(!replay.is_whole());
    }
}
