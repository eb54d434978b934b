use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use grid_batch_core::batches::{Change, LedgerStatus, StatusReport};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::evidence::{LedgerQuestionStore, Resolution, UnresolvedBatch};
use grid_batch_core::polling::{BatchUpdater, PendingBatchStore, PollPace};
use grid_batch_core::{BatchError, BatchResult, ItemId, ServiceId, Timestamp};

use super::{
    answers::{InFlightQueries, no_answer, pending_key, resolution_change, status_change},
    due::{PendingBatch, due_batches, pending_batches},
    next::next_batches,
    unresolved::{in_order, unresolved_batches},
};
use crate::{
    batch::{BatchKey, record},
    sql::{ClaimStore, StoreError, groups::GroupResult},
};

/// The store as used by a monitor: it returns which batches to ask the ledger about, and records the answers.
///
/// Each group of answers is one commit. After it, the subscriber is called with each change, because a service may have
/// a next batch, a batch to send again, or a held one. An answer that changes nothing is recorded once a second. An
/// answer that comes too late changes nothing and is not an error. Answers about services that another transaction
/// keeps locked are given up, and the error names the services. Clones share their state.
///
/// ```no_run
/// use grid_batch_core::{batches::BatchState, events::Recorded};
/// use grid_batch_store::{ClaimStore, MonitorStore};
///
/// # fn example(claims: ClaimStore) {
/// let store = MonitorStore::new(claims, |entry: Recorded<'_>| match entry {
///     Recorded::Change { change, state: BatchState::Absent, .. }
///     | Recorded::Change { change, next_waits: true, .. } => println!("wake {}", change.service_id),
///     _ => {}
/// });
/// # }
/// ```
#[derive(Clone)]
pub struct MonitorStore {
    claims: ClaimStore,
    subscriber: Arc<dyn RecordedSubscriber>,
    queries: Arc<InFlightQueries>,
}

impl MonitorStore {
    /// Uses the batches of the services that `claims` holds. `subscriber` is called with each change.
    ///
    /// An answer counts for the epoch and attempt of its query. Without a query, it counts only as
    /// proof of a commit.
    pub fn new(claims: ClaimStore, subscriber: impl RecordedSubscriber + 'static) -> Self {
        Self { claims, subscriber: Arc::new(subscriber), queries: Arc::default() }
    }

    fn record(&self, changes: &[Change]) -> Result<(), StoreError> {
        let GroupResult { outcomes, error } = record(self.claims.store(), changes);
        for (change, outcome) in changes.iter().zip(outcomes) {
            if let Some(outcome) = outcome {
                self.subscriber.recorded(Recorded::new(change, outcome));
            }
        }
        error.map_or(Ok(()), Err)
    }

    fn update<'a>(
        &self,
        groups: impl IntoIterator<Item = (&'a str, &'a [StatusReport])>,
    ) -> BatchResult<()> {
        let now = self.claims.store().now();
        let (mut changes, mut unchanged) = (Vec::new(), Vec::new());
        for (service_id, reports) in groups {
            let service_id: ServiceId = service_id.parse().map_err(invalid_id)?;
            for report in reports {
                let batch_id = report.batch_id.parse().map_err(invalid_id)?;
                let batch: BatchKey = (service_id.clone(), batch_id);
                if self.queries.is_recorded(&batch, report.status, now) {
                    unchanged.push(batch);
                    continue;
                }
                let query = self.queries.attempt_id(&batch);
                changes.extend(status_change(batch, report, query));
            }
        }
        self.queries.finish(unchanged);
        if changes.is_empty() {
            return Ok(());
        }
        let recorded = self.record(&changes);
        if is_over(&recorded) {
            let batches = changes.into_iter().map(|change| (change.service_id, change.batch_id));
            self.queries.finish(batches);
        }
        Ok(recorded?)
    }

    fn due(&self, now: Timestamp, pace: PollPace, limit: usize) -> BatchResult<Vec<PendingBatch>> {
        let instance = self.claims.instance();
        let store = self.claims.store();
        let batches = due_batches(store, instance.as_str(), now, pace, limit)?;
        self.queries.start(&batches);
        Ok(batches)
    }
}

/// Whether the answers to queries were recorded, or given up because their service is locked.
fn is_over(recorded: &Result<(), StoreError>) -> bool {
    matches!(recorded, Ok(()) | Err(StoreError::ServicesLocked { .. }))
}

impl PendingBatchStore for MonitorStore {
    type Id = PendingBatch;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<PendingBatch>> {
        let always = PollPace { interval: Duration::ZERO, longest: Duration::ZERO };
        self.due(Timestamp::from_micros(i64::MAX), always, limit)
    }

    fn get_due_batch_ids(
        &self,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> BatchResult<Option<Vec<PendingBatch>>> {
        self.due(now, pace, limit).map(Some)
    }

    fn get_pending_batch_ids_of(
        &self,
        service_ids: &[String],
        limit: usize,
    ) -> BatchResult<Option<Vec<PendingBatch>>> {
        let services: Vec<ServiceId> = service_ids
            .iter()
            .map(|id| id.parse().map_err(invalid_id))
            .collect::<BatchResult<_>>()?;
        let instance = self.claims.instance();
        let store = self.claims.store();
        let batches = pending_batches(store, instance.as_str(), &services, limit)?;
        self.queries.start(&batches);
        Ok(Some(batches))
    }

    fn mark_checked(&self, batches: &[PendingBatch]) -> BatchResult<()> {
        let now = self.claims.store().now();
        let is_recorded = |batch: &&PendingBatch| {
            self.queries.is_recorded(&pending_key(batch), LedgerStatus::NotReported, now)
        };
        let (unchanged, changed): (Vec<_>, Vec<_>) = batches.iter().partition(is_recorded);
        self.queries.finish(unchanged.into_iter().map(pending_key));
        if changed.is_empty() {
            return Ok(());
        }
        let changes: Vec<Change> = changed.into_iter().map(no_answer).collect();
        let recorded = record(self.claims.store(), &changes).complete().map(drop);
        if is_over(&recorded) {
            self.queries.finish(batches.iter().map(pending_key));
        }
        Ok(recorded?)
    }
}

impl BatchUpdater for MonitorStore {
    type Status = StatusReport;

    fn update_batch_statuses(&self, service_id: &str, batches: &[StatusReport]) -> BatchResult<()> {
        self.update([(service_id, batches)])
    }

    fn update_groups(&self, groups: &[(String, Vec<StatusReport>)]) -> BatchResult<()> {
        self.update(groups.iter().map(|(id, reports)| (id.as_str(), reports.as_slice())))
    }
}

impl LedgerQuestionStore for MonitorStore {
    fn get_unresolved_batches(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        let service_id: ServiceId = service_id.parse().map_err(invalid_id)?;
        let batches: BTreeSet<BatchKey> = batch_ids
            .iter()
            .map(|id| Ok((service_id.clone(), id.parse().map_err(invalid_id)?)))
            .collect::<BatchResult<_>>()?;
        let instance = self.claims.instance();
        let store = self.claims.store();
        Ok(unresolved_batches(store, instance.as_str(), &batches)?)
    }

    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        let resolutions = in_order(self.claims.store(), resolutions)?;
        let changes: Vec<Change> = resolutions
            .iter()
            .map(|(batch, resolution)| resolution_change(batch, resolution))
            .collect();
        Ok(self.record(&changes)?)
    }

    fn next_batches(&self, services: &[ServiceId]) -> BatchResult<Vec<(ServiceId, ItemId)>> {
        let instance = self.claims.instance();
        Ok(next_batches(self.claims.store(), instance.as_str(), services)?)
    }
}

fn invalid_id(error: impl fmt::Display) -> BatchError {
    BatchError::InvalidAnswer(error.to_string())
}

impl fmt::Debug for MonitorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorStore").field("claims", &self.claims).finish_non_exhaustive()
    }
}
