//! Holds of batches that wait behind others: they are in no lane.

use grid_batch_core::Timestamp;
use grid_batch_core::batches::StoredBatch;

use super::{ActionNote, AttemptLog, lane::Lane};
use crate::sql::{Connection, EventSink, Rows, Statement, StoreError, rows::storable};

/// Holds a batch that waits behind another one, for this reason. The hold begins when the batch becomes the head.
pub(crate) fn hold_waiting(
    connection: &mut Connection,
    batch_seq: i64,
    reason: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let reason = storable(reason);
    let statement = Statement::new(
        "-- hold_waiting
         insert into waiting_holds (batch_seq, held_at, held_reason, cause)
         values (?, ?, ?, 'OPERATOR')
         on conflict (batch_seq) do update
         set held_at = excluded.held_at, held_reason = excluded.held_reason, cause = excluded.cause",
    )
    .long(batch_seq)
    .long(now.as_micros())
    .text(&reason);
    connection.execute(&statement).map(drop)
}

/// Ends the hold of a batch that waits behind another one. Returns whether there was one.
pub(crate) fn release_waiting(
    connection: &mut Connection,
    batch_seq: i64,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "-- release_waiting
         delete from waiting_holds where batch_seq = ?",
    )
    .long(batch_seq);
    Ok(connection.execute(&statement)? > 0)
}

/// Logs an operator's action on a batch that is in no lane, because it waits behind another one or has ended.
pub(crate) fn log_without_lane(
    connection: &mut Connection,
    sink: &EventSink,
    batch: &StoredBatch,
    batch_seq: i64,
    note: ActionNote<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut lane = Lane::of_waiting(batch.service_id.clone(), batch.batch_id, batch_seq);
    lane.progress = batch.progress;
    let mut log = AttemptLog::default();
    log.add_action(&lane, note, now);
    log.write(connection, sink, now)
}

/// Moves the holds of batches that were installed in lanes into the lanes, which are given as service, lane and batch.
pub(crate) fn begin_waiting_holds<'a>(
    connection: &mut Connection,
    heads: impl Iterator<Item = (&'a str, i32, i64)>,
) -> Result<(), StoreError> {
    let heads: Vec<(&str, i32, i64)> = heads.collect();
    if heads.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- begin_waiting_holds
         update lanes
         set held_at = w.held_at, held_reason = w.held_reason, held_until_decision = true
         from {x} join waiting_holds w on w.batch_seq = x.batch_seq
         where lanes.service_id = x.service_id and lanes.lane = x.lane
             and lanes.batch_seq = x.batch_seq",
        Rows::default()
            .text("service_id", heads.iter().map(|head| head.0))
            .int("lane", heads.iter().map(|head| head.1))
            .long("batch_seq", heads.iter().map(|head| head.2)),
    )?;
    connection.execute_rows(
        "-- remove_waiting_holds
         delete from waiting_holds where batch_seq in (select x.batch_seq from {x})",
        Rows::default().long("batch_seq", heads.iter().map(|head| head.2)),
    )
}
