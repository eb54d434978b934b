use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use grid_batch_core::{
    AttemptId, BatchError, BatchResult, BatchUpdater, Change, ChangeOutcome, Event, Evidence,
    PendingBatchStore, PollPace, Resolution, ServiceId, StatusReport, Timestamp, UnresolvedBatch,
    UnresolvedBatchStore,
};

use crate::{
    ClaimStore, PendingBatch, Store, StoreError,
    asked::{Asked, key},
    lanes::Key,
    record::Told,
};

/// The store as those see it who follow batches at their ledger: what is to be asked for, and what
/// is to be written of the answers.
///
/// A group is one commit. Whoever cares is then told of each change what became of it: of a service
/// that is free, a batch that can be sent again, or one that is held. What comes too late changes
/// nothing, and is no error. Clones are one and the same.
///
/// ```no_run
/// use grid_batch_core::BatchState;
/// use grid_batch_store::{ClaimStore, MonitorStore};
///
/// # fn example(claims: ClaimStore) {
/// let store = MonitorStore::new(claims, |change, recorded| match recorded {
///     ChangeOutcome::Applied { state: BatchState::Absent, .. }
///     | ChangeOutcome::Applied { next_waits: true, .. } => println!("wake {}", change.service_id),
///     _ => {}
/// });
/// # }
/// ```
#[derive(Clone)]
pub struct MonitorStore {
    claims: ClaimStore,
    told: Arc<Told>,
    asked: Arc<Asked>,
}

impl MonitorStore {
    /// The batches of the services that `claims` holds; `told` is called for each change. An answer
    /// counts in the epoch of its question; where that is forgotten, only as proof of a commit.
    pub fn new(
        claims: ClaimStore,
        told: impl Fn(&Change, ChangeOutcome) + Send + Sync + 'static,
    ) -> Self {
        Self { claims, told: Arc::new(told), asked: Arc::default() }
    }

    /// Reads from the store as this instance.
    fn read<T>(&self, read: impl FnOnce(&Store, &str) -> Result<T, StoreError>) -> BatchResult<T> {
        Ok(read(self.claims.store(), self.claims.instance().as_str())?)
    }

    fn record(&self, changes: &[Change]) -> BatchResult<()> {
        let recorded = self.claims.store().record(changes)?;
        for (change, recorded) in changes.iter().zip(recorded) {
            (self.told)(change, recorded);
        }
        Ok(())
    }

    fn to_be_asked(&self, batches: Vec<PendingBatch>) -> Vec<PendingBatch> {
        self.asked.begin(&batches);
        batches
    }

    fn update<'a>(
        &self,
        groups: impl IntoIterator<Item = (&'a str, &'a [StatusReport])>,
    ) -> BatchResult<()> {
        let mut changes = Vec::new();
        for (service_id, reports) in groups {
            let service_id: ServiceId = service_id.parse().map_err(invalid)?;
            for report in reports {
                changes.extend(self.change(&service_id, report)?);
            }
        }
        self.record(&changes)?;
        self.asked.end(changes.into_iter().map(|change| (change.service_id, change.batch_id)));
        Ok(())
    }

    /// The change that a ledger's answer makes to the attempt that it was asked about.
    fn change(&self, service_id: &ServiceId, report: &StatusReport) -> BatchResult<Option<Change>> {
        let batch: Key = (service_id.clone(), report.batch_id.parse().map_err(invalid)?);
        let asked = self.asked.attempt_id(&batch);
        let attempt = asked.map(|attempt_id| attempt_id.attempt);
        let event = Event::Status { attempt, status: report.status };
        // Without a attempt id nothing would keep out what an owner before was told.
        if asked.is_none() && !event.is_proof_of_commit() {
            return Ok(None);
        }
        let change = Change::new(batch.0, batch.1, event);
        let epoch = asked.map(|attempt_id| attempt_id.epoch);
        Ok(Some(Change { epoch, receipts: report.receipts.clone(), ..change }))
    }
}

impl PendingBatchStore for MonitorStore {
    type Id = PendingBatch;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<PendingBatch>> {
        let at_any_time = PollPace { interval: Duration::ZERO, longest: Duration::ZERO };
        self.get_due_batch_ids(Timestamp::from_micros(i64::MAX), at_any_time, limit)
    }

    fn get_due_batch_ids(
        &self,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> BatchResult<Vec<PendingBatch>> {
        Ok(self.to_be_asked(self.read(|store, instance| store.due(instance, now, pace, limit))?))
    }

    fn get_pending_batch_ids_of(
        &self,
        service_ids: &[String],
        limit: usize,
    ) -> BatchResult<Vec<PendingBatch>> {
        let services: Vec<ServiceId> =
            service_ids.iter().map(|id| id.parse().map_err(invalid)).collect::<BatchResult<_>>()?;
        let batches = self.read(|store, instance| store.pending_of(instance, &services, limit))?;
        Ok(self.to_be_asked(batches))
    }

    fn mark_checked(&self, batches: &[PendingBatch]) -> BatchResult<()> {
        self.claims.store().mark_checked(batches)?;
        self.asked.end(batches.iter().map(key));
        Ok(())
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

impl UnresolvedBatchStore for MonitorStore {
    fn get_unresolved_batches(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        let service_id: ServiceId = service_id.parse().map_err(invalid)?;
        let batches: BTreeSet<Key> = batch_ids
            .iter()
            .map(|id| Ok((service_id.clone(), id.parse().map_err(invalid)?)))
            .collect::<BatchResult<_>>()?;
        self.read(|store, instance| store.doubts(instance, &batches))
    }

    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        let changes: Vec<Change> =
            resolutions.iter().map(|(doubt, resolution)| settled(doubt, resolution)).collect();
        self.record(&changes)
    }
}

/// A batch is held when nothing could be proved about the attempt that is under way.
fn settled(doubt: &UnresolvedBatch, resolution: &Resolution) -> Change {
    let AttemptId { attempt, epoch } = doubt.attempt_id;
    let (evidence, hold) = match resolution {
        Resolution::Evidence(evidence) => (*evidence, None),
        Resolution::Hold(reason) => (Evidence::Inconclusive, Some(reason.clone())),
    };
    let event = Event::Evidence { attempt, evidence };
    let change = Change::new(doubt.service_id.clone(), doubt.batch_id, event);
    Change { epoch: Some(epoch), hold, ..change }
}

fn invalid(error: impl fmt::Display) -> BatchError {
    BatchError::InvalidAnswer(error.to_string())
}

impl fmt::Debug for MonitorStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitorStore").field("claims", &self.claims).finish_non_exhaustive()
    }
}
