use diesel::prelude::*;
use grid_batch_core::{
    Change, ChangeOutcome, Decision, HeaderId, Progress, ServiceId, Stale, StoredBatch,
};

use super::details::find_one;
use crate::{
    batch::{AttemptLog, lock_services, record_locked},
    sql::{
        Store, StoreError,
        query::{BatchRecord, into_batches, lane_holds_batch},
        rows::limit,
        schema::{batches, lanes},
    },
};

pub(crate) fn held_batches(
    store: &Store,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<StoredBatch>, StoreError> {
    let query = lanes::table
        .inner_join(batches::table.on(lane_holds_batch()))
        .filter(lanes::busy)
        .filter(lanes::held_at.is_not_null())
        .filter(lanes::service_id.gt(after.map_or("", ServiceId::as_str)))
        .order_by((lanes::service_id, lanes::lane))
        .limit(limit(count))
        .select(BatchRecord::as_select());
    into_batches(store.pools.read()?.load_query("held_batches", query)?)
}

pub(crate) fn decide(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &HeaderId,
    attempt: u32,
    decision: Decision,
) -> Result<ChangeOutcome, StoreError> {
    store.pools.write()?.write_transaction(|connection| {
        lock_services(connection, [service_id])?;
        let Some(record) = find_one(connection, service_id, batch_id)? else {
            return Ok(ChangeOutcome::NotFound);
        };
        let batch = record.into_batch()?;
        let Progress { state, attempts: present, .. } = batch.progress;
        if attempt != present && !state.is_terminal() {
            return Ok(ChangeOutcome::Stale(Stale::DecidedOtherAttempt {
                given: attempt,
                present,
            }));
        }
        if batch.held.is_none() {
            return Ok(ChangeOutcome::Stale(Stale::NotHeld { state }));
        }
        let changes: Vec<Change> = decision
            .events(attempt)
            .into_iter()
            .map(|event| Change {
                error: (decision == Decision::Invalid)
                    .then(|| "an operator decided that the ledger rejected it".to_owned()),
                ..Change::new(batch.service_id.clone(), batch.batch_id, event)
            })
            .collect();
        let recorded = record_locked(connection, &changes, AttemptLog::by_operator(), store.now())?;
        recorded.last().copied().ok_or_else(|| StoreError::corrupt("no answer to a change"))
    })
}
