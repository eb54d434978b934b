use std::{
    collections::HashSet,
    fmt,
    mem::take,
    sync::{Arc, Mutex},
};

use grid_batch_core::ItemId;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::lock;

/// The batches whose end clients wait for at one instance while another instance records it. Clones share their state.
///
/// Call [`awaited`](Self::awaited) with each batch that a client begins to wait for. As a subscriber, it is called with
/// each batch that has ended. A [`NotificationListener`](crate::NotificationListener) exchanges both with the other
/// instances.
#[derive(Clone, Default)]
pub struct AwaitedEnds(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Batches that clients of this instance wait for. The other instances have not been notified of them yet.
    awaited: Vec<ItemId>,
    /// Batches that clients of other instances wait for.
    by_others: HashSet<ItemId>,
    /// Those of `by_others` that have ended. The other instances have not been notified of them yet.
    ended: Vec<ItemId>,
}

impl AwaitedEnds {
    /// Limit on the number of batches of each kind. Clients that wait for further batches read them at intervals.
    const LIMIT: usize = 100_000;

    /// Records that clients of this instance wait for these batches.
    pub fn awaited(&self, batch_ids: &[ItemId]) {
        let mut state = lock(&self.0);
        let free = Self::LIMIT.saturating_sub(state.awaited.len());
        state.awaited.extend(batch_ids.iter().take(free));
    }

    /// Records that this instance has recorded the end of a batch.
    pub fn ended(&self, batch_id: &ItemId) {
        let mut state = lock(&self.0);
        if state.by_others.remove(batch_id) {
            state.ended.push(*batch_id);
        }
    }

    /// Records that clients of another instance wait for these batches.
    pub(crate) fn awaited_by_others(&self, batch_ids: Vec<ItemId>) {
        let mut state = lock(&self.0);
        if state.by_others.len() + batch_ids.len() > Self::LIMIT {
            state.by_others.clear();
        }
        state.by_others.extend(batch_ids.into_iter().take(Self::LIMIT));
    }

    /// Takes what the other instances are to be notified of: the batches that are awaited here, and the batches that
    /// have ended.
    pub(crate) fn take(&self) -> (Vec<ItemId>, Vec<ItemId>) {
        let mut state = lock(&self.0);
        (take(&mut state.awaited), take(&mut state.ended))
    }
}

impl RecordedSubscriber for AwaitedEnds {
    fn recorded(&self, entry: Recorded<'_>) {
        if let Some((batch_id, _)) = entry.ended() {
            self.ended(batch_id);
        }
    }
}

impl fmt::Debug for AwaitedEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitedEnds").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ends_that_others_wait_for_are_reported() {
        let ends = AwaitedEnds::default();
        let id = |number| ItemId::from_bytes([number; 64]);
        ends.awaited(&[id(1)]);
        ends.awaited_by_others(vec![id(2), id(3)]);
        for number in [1, 2, 2] {
            ends.ended(&id(number));
        }
        assert_eq!(ends.take(), (vec![id(1)], vec![id(2)]));
        assert_eq!(ends.take(), (vec![], vec![]));
    }

    #[test]
    fn batches_are_bounded() {
        let ends = AwaitedEnds::default();
        let ids = vec![ItemId::from_bytes([1; 64]); AwaitedEnds::LIMIT + 1];
        ends.awaited(&ids);
        ends.awaited(&ids);
        assert_eq!(ends.take().0.len(), AwaitedEnds::LIMIT);
    }
}
