use grid_batch_core::{
    BatchId, BatchResult, BatchStatus, BatchUpdater, LedgerQuestionStore, PendingBatchStore,
    PollPace, Resolution, Timestamp, UnresolvedBatch,
};
use grid_batch_support::catch_panic;

use crate::MonitorCounters;

/// The store in its three roles. A panic of the store is returned as an error.
pub(crate) struct PollerStore<I, T> {
    pub(crate) pending: Box<dyn PendingBatchStore<Id = I>>,
    pub(crate) updater: Box<dyn BatchUpdater<Status = T>>,
    pub(crate) unresolved: Option<Box<dyn LedgerQuestionStore>>,
    pub(crate) counters: MonitorCounters,
}

impl<I: BatchId, T: BatchStatus> PollerStore<I, T> {
    pub(crate) fn due_batches(
        &self,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> BatchResult<Vec<I>> {
        self.call(|| self.pending.get_due_batch_ids(now, pace, limit))
    }

    pub(crate) fn pending_batches_of(
        &self,
        services: &[String],
        limit: usize,
    ) -> BatchResult<Vec<I>> {
        self.call(|| self.pending.get_pending_batch_ids_of(services, limit))
    }

    pub(crate) fn mark_checked(&self, batches: &[I]) -> BatchResult<()> {
        self.call(|| self.pending.mark_checked(batches))
    }

    pub(crate) fn update_groups(&self, groups: &[(String, Vec<T>)]) -> BatchResult<()> {
        self.call(|| self.updater.update_groups(groups))
    }

    pub(crate) fn update(&self, service: &str, statuses: &[T]) -> BatchResult<()> {
        self.call(|| self.updater.update_batch_statuses(service, statuses))
    }

    pub(crate) fn unresolved_batches(
        &self,
        service: &str,
        batches: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        self.call(|| match &self.unresolved {
            Some(store) => store.get_unresolved_batches(service, batches),
            None => Ok(Vec::new()),
        })
    }

    pub(crate) fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        self.call(|| self.unresolved.as_ref().map_or(Ok(()), |store| store.resolve(resolutions)))
    }

    fn call<R>(&self, call: impl FnOnce() -> BatchResult<R>) -> BatchResult<R> {
        let result = self.counters.count_panic(catch_panic(call));
        if result.is_err() {
            self.counters.count(|stats| stats.store_failures += 1);
        }
        result
    }
}
