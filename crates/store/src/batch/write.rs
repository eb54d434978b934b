use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text},
};
use grid_batch_core::Timestamp;

use super::{
    BatchKey,
    lane::{Lane, Lanes},
    new_services::forget_new_services,
    waiting::begin_waiting_holds,
};
use crate::sql::{
    Connection, Dialect, Rows, Statement, StoreError,
    rows::{attempts, batch_id, service_id},
};

/// What became of the lanes whose batch ended.
#[derive(Default)]
pub(super) struct Followers {
    /// The ended batches that were followed by another one.
    pub(super) followed: BTreeSet<BatchKey>,
    /// The new heads that were stored before the database was restored.
    pub(super) restored: Vec<BatchKey>,
}

/// Writes the lanes that changed. Where a batch ended, also writes the batch and installs the next
/// head of its service.
pub(super) fn write(
    connection: &mut Connection,
    lanes: &Lanes,
    now: Timestamp,
) -> Result<Followers, StoreError> {
    let dialect = connection.dialect();
    let (ended, open): (Vec<&Lane>, Vec<&Lane>) = lanes
        .values()
        .filter(|lane| lane.changed)
        .partition(|lane| lane.progress.state.is_terminal());
    let written = connection.execute(&write_lanes(dialect, &open))?;
    expect_all(written, open.len())?;
    let written = connection.execute(&end_batches(dialect, &ended, now))?;
    expect_all(written, ended.len())?;
    let heads: Vec<HeadRow> = connection.load(&install_next_heads(dialect, &ended))?;
    expect_all(heads.len(), ended.len())?;
    let mut busy: BTreeSet<(&str, i32)> = BTreeSet::new();
    let mut restored = Vec::new();
    for row in &heads {
        let Some(id) = &row.batch_id else { continue };
        busy.insert((&row.service_id, row.lane));
        if row.restored {
            restored.push((service_id(&row.service_id)?, batch_id(id)?));
        }
    }
    let first_ends = heads.iter().filter(|row| row.ended == 1);
    forget_new_services(connection, first_ends.map(|row| row.service_id.as_str()))?;
    begin_waiting_holds(connection, heads.iter().filter(|row| row.held))?;
    let has_next = |lane: &&Lane| busy.contains(&(lane.service_id.as_str(), lane.lane));
    let followed = ended.into_iter().filter(has_next).map(Lane::key).collect();
    Ok(Followers { followed, restored })
}

/// Writes the hold of a lane whose batch is open.
pub(crate) fn write_held(connection: &mut Connection, lane: &Lane) -> Result<(), StoreError> {
    write_open(connection, &[lane])
}

/// Writes lanes whose batches are open.
pub(crate) fn write_open(connection: &mut Connection, lanes: &[&Lane]) -> Result<(), StoreError> {
    let written = connection.execute(&write_lanes(connection.dialect(), lanes))?;
    expect_all(written, lanes.len())
}

/// The rows are locked, so fewer than expected means that the lock does not work.
fn expect_all(written: usize, expected: usize) -> Result<(), StoreError> {
    if written == expected {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("only {written} of {expected} rows that were just locked")))
    }
}

fn write_lanes<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- write_lanes
         update lanes as s
         set submitted = x.submitted, dlt_status = x.dlt_status, commit_proven = x.commit_proven,
             earlier_may_arrive = x.earlier_may_arrive, invalid_reported = x.invalid_reported,
             submitted_at = x.submitted_at, since = x.since, checked_at = x.checked_at,
             next_try_at = x.next_try_at, delays = x.delays, delayed_since = x.delayed_since,
             refusals = x.refusals, not_accepted = x.not_accepted, last_error = x.last_error,
             held_at = x.held_at, held_reason = x.held_reason,
             held_until_decision = x.held_until_decision
         from {x}
         where s.service_id = x.service_id and s.lane = x.lane
             and s.batch_seq = x.batch_seq and s.attempts = x.attempts",
    )
    .rows(
        lane_rows(lanes)
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .bool("submitted", lanes.iter().map(|lane| lane.progress.state.submitted()))
            .bool("commit_proven", lanes.iter().map(|lane| lane.progress.commit_proven))
            .bool("earlier_may_arrive", lanes.iter().map(|lane| lane.progress.earlier_may_arrive))
            .bool("invalid_reported", lanes.iter().map(|lane| lane.progress.invalid_reported))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.dlt_status()))
            .optional_long("submitted_at", lanes.iter().map(|lane| lane.submitted_at))
            .optional_long("since", lanes.iter().map(|lane| lane.since))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_long("next_try_at", lanes.iter().map(|lane| lane.next_try_at))
            .int("delays", lanes.iter().map(|lane| lane.delay.delays))
            .optional_long("delayed_since", lanes.iter().map(|lane| lane.delay.delayed_since))
            .int("refusals", lanes.iter().map(|lane| lane.delay.refusals))
            .int("not_accepted", lanes.iter().map(|lane| lane.delay.not_accepted))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref()))
            .optional_long("held_at", lanes.iter().map(|lane| lane.held_at()))
            .optional_text("held_reason", lanes.iter().map(|lane| lane.held_reason()))
            .bool("held_until_decision", lanes.iter().map(|lane| lane.is_held_until_decision())),
    )
}

pub(super) fn end_batches<'a>(
    dialect: Dialect,
    lanes: &[&'a Lane],
    now: Timestamp,
) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- end_batches
         update batches as b
         set ended_at = x.ended_at, dlt_status = x.dlt_status, attempts = x.attempts,
             submitted_at = x.submitted_at, checked_at = x.checked_at, last_error = x.last_error
         from {x}
         where b.seq = x.batch_seq and b.ended_at is null",
    )
    .rows(
        Rows::default()
            .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
            .long("ended_at", lanes.iter().map(|_| now.as_micros()))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.dlt_status()))
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .optional_long("submitted_at", lanes.iter().map(|lane| lane.submitted_at))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref())),
    )
}

/// The next head is the first open batch after the one that ended: `created_at` only increases, so
/// no older batch can be added. One that was stored before the database was restored may have been
/// sent in the time that was lost.
fn install_next_heads<'a>(dialect: Dialect, lanes: &[&'a Lane]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- install_next_heads
         update lanes
         set (batch_seq, batch_id, created_at) = (
                 select n.seq, n.batch_id, n.created_at from batches n
                 where n.service_id = lanes.service_id
                     and n.created_at > lanes.created_at and n.ended_at is null
                 order by n.service_id, n.created_at limit 1),
             submitted = false, dlt_status = null, commit_proven = false,
             earlier_may_arrive = false, invalid_reported = false, attempts = 0,
             submitted_at = null, since = null, checked_at = null, next_try_at = null, last_error = null,
             delays = 0, delayed_since = null, refusals = 0, not_accepted = 0,
             held_at = null, held_reason = null, held_until_decision = false,
             ended = lanes.ended + 1
         from {x}
         where lanes.service_id = x.service_id and lanes.lane = x.lane
             and lanes.batch_seq = x.batch_seq
         returning lanes.service_id, lanes.lane, lanes.batch_id, coalesce(
                 lanes.batch_seq <= (select d.restored_seq from database_state d where d.id = 1),
                 false) as restored, lanes.batch_seq,
             (select count(*) from waiting_holds w where w.batch_seq = lanes.batch_seq) > 0 as held,
             lanes.ended",
    )
    .rows(lane_rows(lanes))
}

fn lane_rows<'a>(lanes: &[&'a Lane]) -> Rows<'a> {
    Rows::default()
        .text("service_id", lanes.iter().map(|lane| lane.service_id.as_str()))
        .int("lane", lanes.iter().map(|lane| lane.lane))
        .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
}

/// The head of a lane.
#[derive(QueryableByName)]
pub(super) struct HeadRow {
    #[diesel(sql_type = Text)]
    pub(super) service_id: String,
    #[diesel(sql_type = Integer)]
    pub(super) lane: i32,
    #[diesel(sql_type = Nullable<Binary>)]
    batch_id: Option<Vec<u8>>,
    #[diesel(sql_type = Bool)]
    restored: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(super) batch_seq: Option<i64>,
    #[diesel(sql_type = Bool)]
    held: bool,
    /// The number of batches that ended in the lane.
    #[diesel(sql_type = BigInt)]
    ended: i64,
}
