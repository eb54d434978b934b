use std::collections::{HashMap, HashSet};

use grid_batch_core::evidence::{LedgerQuestionStore, Resolution, UnresolvedBatch};
use grid_batch_core::polling::{
    BatchId, BatchStatus, BatchUpdater, LARGEST_PENDING_LIMIT, PendingBatchStore, PollPace,
};
use grid_batch_core::{BatchResult, Timestamp};
use grid_batch_support::catch_panic;
use tokio::time::Instant;

use crate::{
    MonitorCounters,
    service_search::{pause_after, read_to_end},
};

/// The store in its three roles. If the store panics, an error is returned.
pub(crate) struct PollerStore<I, T> {
    pub(crate) pending: Box<dyn PendingBatchStore<Id = I>>,
    pub(crate) updater: Box<dyn BatchUpdater<Status = T>>,
    pub(crate) unresolved: Option<Box<dyn LedgerQuestionStore>>,
    pub(crate) counters: MonitorCounters,
    /// Empty if the store is read by service.
    pub(crate) all: AllPending<I>,
}

impl<I: BatchId, T: BatchStatus> PollerStore<I, T> {
    /// Calls `found` with the services that have due batches, or pending ones if the store does not know which
    /// are due. The first read is of up to `first_limit` batches.
    pub(crate) fn search(
        &mut self,
        now: Timestamp,
        pace: PollPace,
        first_limit: usize,
        mut found: impl FnMut(&str),
    ) -> BatchResult<()> {
        let due = read_to_end(first_limit, |limit| {
            self.call(|| self.pending.get_due_batch_ids(now, pace, limit))
        })?;
        match due {
            Some(batches) => batches.iter().for_each(|batch| found(batch.get_service_id())),
            None => {
                self.read_all(first_limit)?;
                self.all.by_service.keys().for_each(|service| found(service));
            }
        }
        Ok(())
    }

    /// All pending batches of these services. If the store cannot be read by service, the result may be slightly old.
    pub(crate) fn pending_batches_of(
        &mut self,
        services: &[String],
        first_limit: usize,
    ) -> BatchResult<Vec<I>> {
        let read = || self.pending.get_pending_batch_ids_of(services, LARGEST_PENDING_LIMIT);
        if let Some(batches) = self.call(read)? {
            return Ok(batches);
        }
        if !self.all.is_fresh() {
            self.read_all(first_limit)?;
        }
        Ok(self.all.of(services))
    }

    fn read_all(&mut self, first_limit: usize) -> BatchResult<()> {
        let started = Instant::now();
        let read = |limit| self.call(|| self.pending.get_pending_batch_ids(limit)).map(Some);
        // The number is probably about the same as at the last read.
        let batches = read_to_end(self.all.count.saturating_add(first_limit), read)?;
        self.all = AllPending::new(batches.unwrap_or_default(), started);
        Ok(())
    }

    pub(crate) fn mark_checked(&self, batches: &[I]) -> BatchResult<()> {
        self.call(|| self.pending.mark_checked(batches))
    }

    pub(crate) fn update_groups(&mut self, groups: &[(String, Vec<T>)]) -> BatchResult<()> {
        self.call(|| self.updater.update_groups(groups))?;
        groups.iter().for_each(|(service, statuses)| self.all.update(service, statuses));
        Ok(())
    }

    pub(crate) fn update(&mut self, service: &str, statuses: &[T]) -> BatchResult<()> {
        self.call(|| self.updater.update_batch_statuses(service, statuses))?;
        self.all.update(service, statuses);
        Ok(())
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

/// All pending batches of a store that cannot be read by service, as one read returned them.
///
/// Such a store can only be read from its first batch on, so the cost of each read grows with the number of pending
/// batches. One read therefore serves many polls: it stays valid for several times as long as it took.
pub(crate) struct AllPending<I> {
    by_service: HashMap<String, Vec<I>>,
    count: usize,
    /// `None`: nothing was read.
    fresh_until: Option<Instant>,
}

impl<I> Default for AllPending<I> {
    fn default() -> Self {
        Self { by_service: HashMap::new(), count: 0, fresh_until: None }
    }
}

impl<I: BatchId> AllPending<I> {
    fn new(batches: Vec<I>, read_started: Instant) -> Self {
        let now = Instant::now();
        let count = batches.len();
        let mut by_service: HashMap<String, Vec<I>> = HashMap::new();
        for batch in batches {
            match by_service.get_mut(batch.get_service_id()) {
                Some(of_service) => of_service.push(batch),
                None => drop(by_service.insert(batch.get_service_id().to_owned(), vec![batch])),
            }
        }
        Self { by_service, count, fresh_until: Some(now + pause_after(now - read_started)) }
    }

    fn is_fresh(&self) -> bool {
        self.fresh_until.is_some_and(|end| Instant::now() < end)
    }

    fn of(&self, services: &[String]) -> Vec<I> {
        services
            .iter()
            .filter_map(|service| self.by_service.get(service))
            .flatten()
            .cloned()
            .collect()
    }

    /// Forgets the batches that ended with these statuses.
    fn update<T: BatchStatus>(&mut self, service: &str, statuses: &[T]) {
        let Some(batches) = self.by_service.get_mut(service) else { return };
        let ended: HashSet<&str> =
            statuses.iter().filter(|it| it.is_final()).map(BatchStatus::get_id).collect();
        batches.retain(|batch| !ended.contains(batch.get_id()));
        if batches.is_empty() {
            self.by_service.remove(service);
        }
    }
}
