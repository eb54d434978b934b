use grid_batch_core::{
    Change, ChangeOutcome, Decision, HeaderId, Progress, ServiceId, Stale, StoredBatch,
};

use crate::{
    batch::{AttemptLog, lock_services, record_locked},
    sql::{
        Store, StoreError,
        rows::{BATCH_COLUMNS, BatchRow, limit},
    },
};

impl Store {
    /// Up to `limit` batches that wait for a person, in the order of their services' names, from
    /// the service after `after`.
    pub fn held_batches(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let statement = self
            .statement(format!(
                "-- held_batches
                 select {BATCH_COLUMNS}
                 from lanes s join batches b on b.seq = s.batch_seq
                 where s.busy and s.held_at is not null and s.service_id > ?
                 order by s.service_id, s.lane limit ?"
            ))
            .text(after.map_or("", ServiceId::as_str))
            .long(limit(count));
        let rows: Vec<BatchRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(BatchRow::into_batch).collect()
    }

    /// Records what a person decided about a batch that is held, and notes it in the batch's story.
    ///
    /// A batch that is not held is left alone, and the answer says where it stands: evidence or the
    /// ledger may have been faster than the person.
    pub fn decide(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
        decision: Decision,
    ) -> Result<ChangeOutcome, StoreError> {
        self.pools.write()?.transaction(|connection| {
            lock_services(connection, [service_id])?;
            let Some(row) = self.find_one(connection, service_id, batch_id)? else {
                return Ok(ChangeOutcome::NotFound);
            };
            let batch = row.into_batch()?;
            let Progress { state, attempts: attempt, .. } = batch.progress;
            if batch.held.is_none() {
                return Ok(ChangeOutcome::Stale(Stale::NotHeld { state }));
            }
            let event = decision.event(attempt);
            let mut change = Change::new(batch.service_id, batch.batch_id, event);
            if decision == Decision::Invalid {
                change.error = Some("a person found that the ledger refused it".to_owned());
            }
            let recorded =
                record_locked(connection, &[change], AttemptLog::by_operator(), self.now())?;
            recorded.first().copied().ok_or_else(|| StoreError::corrupt("no answer to a change"))
        })
    }
}
