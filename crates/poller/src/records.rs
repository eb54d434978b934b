use grid_batch_core::{
    BatchId, BatchResult, BatchStatus, BatchUpdater, PendingBatchStore, PollPace, Resolution,
    Timestamp, UnresolvedBatch, UnresolvedBatchStore,
};

use crate::{MonitorCounters, panics::catch};

/// The store, in its three roles. Whatever panics there is an error here.
pub(crate) struct Records<I, T> {
    pub(crate) store: Box<dyn PendingBatchStore<Id = I>>,
    pub(crate) updater: Box<dyn BatchUpdater<Status = T>>,
    pub(crate) doubts: Option<Box<dyn UnresolvedBatchStore>>,
    pub(crate) counters: MonitorCounters,
}

impl<I: BatchId, T: BatchStatus> Records<I, T> {
    pub(crate) fn due(&self, now: Timestamp, pace: PollPace, limit: usize) -> BatchResult<Vec<I>> {
        self.call(|| self.store.get_due_batch_ids(now, pace, limit))
    }

    pub(crate) fn of(&self, services: &[String], limit: usize) -> BatchResult<Vec<I>> {
        self.call(|| self.store.get_pending_batch_ids_of(services, limit))
    }

    pub(crate) fn mark_checked(&self, batches: &[I]) -> BatchResult<()> {
        self.call(|| self.store.mark_checked(batches))
    }

    pub(crate) fn update_groups(&self, groups: &[(String, Vec<T>)]) -> BatchResult<()> {
        self.call(|| self.updater.update_groups(groups))
    }

    pub(crate) fn update(&self, service: &str, statuses: &[T]) -> BatchResult<()> {
        self.call(|| self.updater.update_batch_statuses(service, statuses))
    }

    pub(crate) fn doubts(
        &self,
        service: &str,
        batches: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        self.call(|| match &self.doubts {
            Some(doubts) => doubts.get_unresolved_batches(service, batches),
            None => Ok(Vec::new()),
        })
    }

    pub(crate) fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        self.call(|| self.doubts.as_ref().map_or(Ok(()), |doubts| doubts.resolve(resolutions)))
    }

    fn call<R>(&self, call: impl FnOnce() -> BatchResult<R>) -> BatchResult<R> {
        let result = self.counters.survive(catch(call));
        if result.is_err() {
            self.counters.count(|stats| stats.store_failures += 1);
        }
        result
    }
}
