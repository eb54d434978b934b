use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use grid_batch_core::ItemId;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::lock;
use tokio::sync::Notify;

/// Is called with batches that a request waits for.
type AwaitedCallback = dyn Fn(&[ItemId]) + Send + Sync;

/// The batches whose end requests wait for. Clones share them.
///
/// It is a subscriber, which is called with each batch that has ended. A request that misses an end reads its batches
/// again at intervals.
#[derive(Clone)]
pub struct AwaitedBatches {
    waits: Arc<Mutex<Waits>>,
    awaited: Arc<AwaitedCallback>,
}

#[derive(Default)]
struct Waits {
    last_id: u64,
    by_batch: HashMap<ItemId, Vec<u64>>,
    by_id: HashMap<u64, Wait>,
}

struct Wait {
    /// How many of its batches have not ended.
    open: usize,
    all_ended: Arc<Notify>,
}

impl AwaitedBatches {
    /// `awaited` is called with the batches that a request begins to wait for. It must return quickly.
    pub fn new(awaited: impl Fn(&[ItemId]) + Send + Sync + 'static) -> Self {
        Self { waits: Arc::default(), awaited: Arc::new(awaited) }
    }

    /// A batch has ended, and this is visible in the store.
    pub fn ended(&self, batch_id: &ItemId) {
        let mut waits = lock(&self.waits);
        for wait in waits.by_batch.remove(batch_id).unwrap_or_default() {
            waits.one_ended(wait);
        }
    }

    /// Begins a wait for these batches: the ends that are reported from now on count.
    pub(crate) fn wait_for(&self, batches: impl IntoIterator<Item = ItemId>) -> EndWait {
        let mut waits = lock(&self.waits);
        waits.last_id += 1;
        let id = waits.last_id;
        let mut batches: Vec<ItemId> = batches.into_iter().collect();
        batches.sort_unstable();
        batches.dedup();
        for batch in &batches {
            waits.by_batch.entry(*batch).or_default().push(id);
        }
        let all_ended = Arc::new(Notify::new());
        waits.by_id.insert(id, Wait { open: batches.len(), all_ended: Arc::clone(&all_ended) });
        drop(waits);
        EndWait { awaited: self.clone(), id, batches, all_ended }
    }
}

impl Waits {
    fn one_ended(&mut self, id: u64) {
        let Some(wait) = self.by_id.get_mut(&id) else { return };
        wait.open -= 1;
        if wait.open == 0 {
            wait.all_ended.notify_one();
        }
    }

    /// Takes a wait from a batch. `false`: the batch has ended.
    fn remove(&mut self, id: u64, batch: &ItemId) -> bool {
        let Some(waits) = self.by_batch.get_mut(batch) else { return false };
        let count = waits.len();
        waits.retain(|wait| *wait != id);
        let was_removed = waits.len() < count;
        if waits.is_empty() {
            self.by_batch.remove(batch);
        }
        was_removed
    }
}

impl RecordedSubscriber for AwaitedBatches {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::EndedElsewhere(batch_ids) => batch_ids.iter().for_each(|id| self.ended(id)),
            Recorded::EndedWaiting(ended) => ended.iter().for_each(|(id, _)| self.ended(id)),
            _ => entry.ended().into_iter().for_each(|(id, _)| self.ended(id)),
        }
    }
}

impl Default for AwaitedBatches {
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl fmt::Debug for AwaitedBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwaitedBatches").finish_non_exhaustive()
    }
}

/// A wait for the end of all of some batches.
#[derive(Debug)]
pub(crate) struct EndWait {
    awaited: AwaitedBatches,
    id: u64,
    batches: Vec<ItemId>,
    all_ended: Arc<Notify>,
}

impl EndWait {
    /// Waits only for those batches for which this is true, because a read has found that the others have ended.
    pub(crate) fn retain(&mut self, is_open: impl Fn(&ItemId) -> bool) {
        let mut waits = lock(&self.awaited.waits);
        let (open, ended): (Vec<_>, Vec<_>) = self.batches.drain(..).partition(is_open);
        self.batches = open;
        for batch in &ended {
            if waits.remove(self.id, batch) {
                waits.one_ended(self.id);
            }
        }
        drop(waits);
        (self.awaited.awaited)(&self.batches);
    }

    /// Returns once, when all have ended.
    pub(crate) async fn all_ended(&self) {
        self.all_ended.notified().await;
    }
}

impl Drop for EndWait {
    fn drop(&mut self) {
        let mut waits = lock(&self.awaited.waits);
        waits.by_id.remove(&self.id);
        for batch in &self.batches {
            waits.remove(self.id, batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use grid_batch_core::batches::{BatchState, Change, Event, LedgerStatus};

    use super::*;

    fn id(number: u8) -> ItemId {
        ItemId::from_bytes([number; 64])
    }

    fn is_over(ends: &EndWait) -> bool {
        ends.all_ended().now_or_never().is_some()
    }

    #[test]
    fn wait_ends_with_the_last_of_its_batches() {
        let awaited = AwaitedBatches::default();
        let both = awaited.wait_for([id(1), id(2), id(1)]);
        let one = awaited.wait_for([id(2)]);
        awaited.ended(&id(1));
        assert!(!is_over(&both) && !is_over(&one));
        awaited.ended(&id(3));
        awaited.ended(&id(2));
        assert!(is_over(&both) && is_over(&one));
        drop((both, one));
        let waits = lock(&awaited.waits);
        assert!(waits.by_batch.is_empty() && waits.by_id.is_empty());
    }

    #[test]
    fn recorded_ends_wake_requests() {
        let awaited = AwaitedBatches::default();
        let [here, elsewhere] = [1, 2].map(|number| awaited.wait_for([id(number)]));
        let event = Event::status(LedgerStatus::Committed);
        let change = &Change::new("a::b".parse().unwrap(), id(1), event);
        awaited.recorded(Recorded::EndedElsewhere(&[id(2)]));
        assert!(!is_over(&here) && is_over(&elsewhere));
        let state = BatchState::Committed;
        awaited.recorded(Recorded::Change { change, state, next_waits: false });
        assert!(is_over(&here));
    }

    #[test]
    fn batches_that_a_read_found_ended_are_not_waited_for() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&told);
        let awaited = AwaitedBatches::new(move |ids| all.lock().unwrap().extend_from_slice(ids));
        let mut ends = awaited.wait_for([id(1), id(2), id(3)]);
        // The end of one was reported before the read.
        awaited.ended(&id(1));
        ends.retain(|batch| *batch == id(3));
        assert_eq!(*told.lock().unwrap(), [id(3)]);
        assert!(!is_over(&ends));
        awaited.ended(&id(3));
        assert!(is_over(&ends));
        drop(ends);
        assert!(lock(&awaited.waits).by_batch.is_empty());
    }
}
