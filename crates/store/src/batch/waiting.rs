//! Batches that wait behind the head of their service: they are in no lane.

use grid_batch_core::{Change, ChangeOutcome, HeaderId, ServiceId, Timestamp};

use super::{
    AttemptLog,
    lane::Lane,
    new_services::forget_new_services,
    write::{HeadRow, end_batches},
};
use crate::sql::{Connection, Rows, Statement, StoreError, rows::storable};

/// Ends a batch that waits behind another one of its service, which is locked.
pub(crate) fn end_waiting(
    connection: &mut Connection,
    batch_seq: i64,
    change: &Change,
    now: Timestamp,
) -> Result<ChangeOutcome, StoreError> {
    let mut lane = Lane::of_waiting(change.service_id.clone(), change.batch_id, batch_seq);
    if let Err(stale) = lane.apply(change, now) {
        return Ok(ChangeOutcome::Stale(stale));
    }
    let mut log = AttemptLog::default();
    log.add(&lane, change, now);
    let dialect = connection.dialect();
    connection.execute(&end_batches(dialect, &[&lane], now))?;
    connection.execute(
        &Statement::new(
            dialect,
            "-- count_ended
             update lanes set ended = ended + 1
             where service_id = ? and lane = (
                 select min(s.lane) from lanes s where s.service_id = ?)",
        )
        .text(change.service_id.as_str())
        .text(change.service_id.as_str()),
    )?;
    forget_new_services(connection, [change.service_id.as_str()])?;
    log.write(connection)?;
    Ok(ChangeOutcome::Applied { state: lane.progress().state, next_waits: false })
}

/// Holds a batch that waits behind another one, for this reason, from when it becomes the head.
pub(crate) fn hold_waiting(
    connection: &mut Connection,
    batch_seq: i64,
    reason: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let reason = storable(reason);
    let statement = Statement::new(
        connection.dialect(),
        "-- hold_waiting
         insert into waiting_holds (batch_seq, held_at, held_reason) values (?, ?, ?)
         on conflict (batch_seq) do update
         set held_at = excluded.held_at, held_reason = excluded.held_reason",
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
        connection.dialect(),
        "-- release_waiting
         delete from waiting_holds where batch_seq = ?",
    )
    .long(batch_seq);
    Ok(connection.execute(&statement)? > 0)
}

/// Logs what an operator did with a batch that waits behind another one.
pub(crate) fn log_waiting(
    connection: &mut Connection,
    (service_id, batch_id): (&ServiceId, HeaderId),
    batch_seq: i64,
    (action, reason): (&str, Option<&str>),
    now: Timestamp,
) -> Result<(), StoreError> {
    let lane = Lane::of_waiting(service_id.clone(), batch_id, batch_seq);
    let mut log = AttemptLog::default();
    log.add_action(&lane, action, reason, now);
    log.write(connection)
}

/// Moves the holds of batches that have become heads into their lanes.
pub(super) fn begin_waiting_holds<'a>(
    connection: &mut Connection,
    heads: impl Iterator<Item = &'a HeadRow>,
) -> Result<(), StoreError> {
    let heads: Vec<(&HeadRow, i64)> =
        heads.filter_map(|head| Some((head, head.batch_seq?))).collect();
    if heads.is_empty() {
        return Ok(());
    }
    let dialect = connection.dialect();
    let begin = Statement::new(
        dialect,
        "-- begin_waiting_holds
         update lanes
         set held_at = w.held_at, held_reason = w.held_reason, held_until_decision = true
         from {x} join waiting_holds w on w.batch_seq = x.batch_seq
         where lanes.service_id = x.service_id and lanes.lane = x.lane
             and lanes.batch_seq = x.batch_seq",
    )
    .rows(
        Rows::default()
            .text("service_id", heads.iter().map(|(head, _)| head.service_id.as_str()))
            .int("lane", heads.iter().map(|(head, _)| head.lane))
            .long("batch_seq", heads.iter().map(|(_, seq)| *seq)),
    );
    connection.execute(&begin)?;
    let remove = Statement::new(
        dialect,
        "-- remove_waiting_holds
         delete from waiting_holds where batch_seq in (select x.batch_seq from {x})",
    )
    .rows(Rows::default().long("batch_seq", heads.iter().map(|(_, seq)| *seq)));
    connection.execute(&remove).map(drop)
}
