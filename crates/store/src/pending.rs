use grid_batch_core::{
    BatchError, BatchId, BatchResult, BatchState, BatchUpdater, Event, HeaderId, LedgerStatus,
    PendingBatchStore, ServiceId, StatusReport, Ticket, Timestamp,
};

use crate::{
    Change, Store, StoreError,
    dialect::Dialect,
    rows::{HandedOutRow, in_states, limit},
    statement::Statement,
};

/// A batch that the ledger is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
    /// The attempt that is under way, counted from 1.
    pub attempt: u32,
    /// The service's epoch.
    pub epoch: u64,
    text: String,
}

impl BatchId for PendingBatch {
    fn get_id(&self) -> &str {
        &self.text
    }

    fn get_service_id(&self) -> &str {
        self.service_id.as_str()
    }
}

impl Store {
    /// Up to `limit` batches to ask the ledger for, that were last asked for before
    /// `checked_before`: the least recently checked first, then in the order of submission.
    pub fn pending(
        &self,
        checked_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<PendingBatch>, StoreError> {
        let statement = pending(self.pools.dialect(), checked_before.as_micros(), limit);
        let rows: Vec<HandedOutRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(into_pending).collect()
    }
}

impl Store {
    /// Notes that the ledger was asked for these batches and gave no usable answer, so that others
    /// have their turn before they are asked for again.
    pub fn mark_checked(&self, batches: &[PendingBatch]) -> Result<(), StoreError> {
        let nothing_new = |batch: &PendingBatch| {
            let event =
                Event::Status { attempt: Some(batch.attempt), status: LedgerStatus::Unknown };
            let change = Change::new(batch.service_id.clone(), batch.batch_id, event);
            Change { epoch: Some(batch.epoch), ..change }
        };
        self.record(&batches.iter().map(nothing_new).collect::<Vec<_>>()).map(drop)
    }
}

impl PendingBatchStore for Store {
    type Id = PendingBatch;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<PendingBatch>> {
        Ok(self.pending(Timestamp::from_micros(i64::MAX), limit)?)
    }
}

impl BatchUpdater for Store {
    type Status = StatusReport;

    fn update_batch_statuses(&self, service_id: &str, batches: &[StatusReport]) -> BatchResult<()> {
        let invalid = |error: &dyn std::fmt::Display| BatchError::InvalidAnswer(error.to_string());
        let service_id: ServiceId = service_id.parse().map_err(|error| invalid(&error))?;
        let changes = batches
            .iter()
            .map(|report| {
                let batch_id = report.batch_id.parse().map_err(|error| invalid(&error))?;
                let event = Event::status(report.status);
                let receipts = report.receipts.clone();
                Ok(Change { receipts, ..Change::new(service_id.clone(), batch_id, event) })
            })
            .collect::<BatchResult<Vec<Change>>>()?;
        self.record(&changes)?;
        Ok(())
    }
}

/// Reads the lanes that are busy and sorts them: their number is that of the services with open
/// batches, whatever waits behind them. An index in this order would have to follow each change.
pub(crate) fn pending<'a>(dialect: Dialect, checked_before: i64, count: usize) -> Statement<'a> {
    let states = in_states("s", BatchState::awaits_poller);
    Statement::new(
        dialect,
        format!(
            "-- pending
             select s.service_id, s.batch_id, s.attempts, s.epoch from batch_statuses s
             where s.busy and {states} and (s.checked_at is null or s.checked_at < ?)
             order by s.checked_at nulls first, s.submitted_at, s.service_id limit ?"
        ),
    )
    .long(checked_before)
    .long(limit(count))
}

fn into_pending(row: HandedOutRow) -> Result<PendingBatch, StoreError> {
    let (service_id, batch_id, Ticket { attempt, epoch }) = row.read()?;
    let text = batch_id.to_string();
    Ok(PendingBatch { service_id, batch_id, attempt, epoch, text })
}
