use std::collections::BTreeSet;

use grid_batch_core::batches::BatchState;
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    BatchKey,
    end_waiting::end_committed_ahead,
    free::{Ended, follow_ends},
    lane::{Lane, Lanes},
    waiting::begin_waiting_holds,
};
use crate::{
    halts::{Stops, stop_in_order},
    sql::{
        Connection, Rows, Scheduler, Statement, StoreError,
        hooks::{BatchHooks, EndedBatch},
        result_row,
        rows::{attempts, batch_id, service_id},
    },
};

/// What followed in the lanes whose batch ended.
#[derive(Default)]
pub(super) struct Followers {
    /// The ended batches that were followed by another one.
    pub(super) followed: BTreeSet<BatchKey>,
    /// The new heads that were stored before the database was restored.
    pub(super) restored: BTreeSet<BatchKey>,
    /// The services with a pool that was parked, so that another batch may be next.
    pub(super) parked: BTreeSet<ServiceId>,
}

/// Writes the lanes that changed. If a batch ended, also writes the batch and installs the next head of its service.
pub(super) fn write(
    connection: &mut Connection,
    scheduler: &Scheduler,
    lanes: &Lanes,
    now: Timestamp,
) -> Result<Followers, StoreError> {
    let (ended, open): (Vec<&Lane>, Vec<&Lane>) = lanes
        .values()
        .filter(|lane| lane.changed)
        .partition(|lane| lane.progress.state.is_terminal());
    write_open(connection, &open)?;
    let hooks = scheduler.hooks();
    end(connection, hooks, &ended, now)?;
    let (positioned, ordered): (Vec<&Lane>, Vec<&Lane>) =
        ended.into_iter().partition(|lane| lane.position.is_some());
    let (by_pool, in_one_lane): (Vec<&Lane>, Vec<&Lane>) =
        ordered.iter().copied().partition(|lane| lane.by_pool);
    end_committed_ahead(connection, scheduler, &in_one_lane, now)?;
    let mut followers = follow_in_order(connection, &in_one_lane)?;
    follow_by_pool(connection, hooks, &by_pool, with_parked_pool(&open), now, &mut followers)?;
    let stops = |lane: &&Lane| {
        let stops = Stops::by_policy(scheduler, &lane.service_id, lane.progress.state);
        (lane.batch_seq, stops)
    };
    stop_in_order(connection, ordered.iter().map(stops), now)?;
    followers.followed.extend(free_lanes(connection, scheduler, &positioned, now)?);
    Ok(followers)
}

/// Installs the next heads of services with one lane.
fn follow_in_order(connection: &mut Connection, ended: &[&Lane]) -> Result<Followers, StoreError> {
    let heads = install_next_heads(connection, ended)?;
    let mut busy: BTreeSet<(&str, i32)> = BTreeSet::new();
    let mut restored = BTreeSet::new();
    for row in &heads {
        let Some(id) = &row.batch_id else { continue };
        busy.insert((&row.service_id, row.lane));
        if row.restored {
            restored.insert((service_id(&row.service_id)?, batch_id(id)?));
        }
    }
    let first_ends = heads.iter().filter(|row| row.ended == 1);
    forget_new_services(connection, first_ends.map(|row| row.service_id.as_str()))?;
    let held = heads.iter().filter(|row| row.held);
    begin_waiting_holds(
        connection,
        held.filter_map(|row| Some((row.service_id.as_str(), row.lane, row.batch_seq?))),
    )?;
    let has_next = |lane: &&&Lane| busy.contains(&(lane.service_id.as_str(), lane.lane));
    let followed = ended.iter().filter(has_next).map(|lane| lane.key()).collect();
    Ok(Followers { followed, restored, ..Followers::default() })
}

/// The services with a pool that these changes parked.
fn with_parked_pool(lanes: &[&Lane]) -> BTreeSet<ServiceId> {
    let parked = lanes.iter().filter(|lane| lane.delay.pool_parked && lane.position.is_none());
    parked.map(|lane| lane.service_id.clone()).collect()
}

/// Installs the next heads of gas admins with a lane for each parked pool, and of those with a pool that was just
/// `parked`.
fn follow_by_pool(
    connection: &mut Connection,
    hooks: &dyn BatchHooks,
    ended: &[&Lane],
    parked: BTreeSet<ServiceId>,
    now: Timestamp,
    followers: &mut Followers,
) -> Result<(), StoreError> {
    if ended.is_empty() && parked.is_empty() {
        return Ok(());
    }
    clear_lanes(connection, ended)?;
    let services = ended.iter().map(|lane| lane.service_id.clone());
    let services: BTreeSet<ServiceId> = services.chain(parked.iter().cloned()).collect();
    followers.restored.extend(hooks.fill_by_pool(connection, &services, now)?);
    // Even if nothing was installed, another lane may have a batch that can be next.
    followers.followed.extend(ended.iter().map(|lane| lane.key()));
    followers.parked = parked;
    Ok(())
}

/// Frees the lanes of batches that ended, and fills those of their services. Returns the ended batches
/// whose services got a next batch.
fn free_lanes(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ended: &[&Lane],
    now: Timestamp,
) -> Result<BTreeSet<BatchKey>, StoreError> {
    let rows = clear_lanes(connection, ended)?;
    let first_ends = rows.iter().filter(|(_, ended)| *ended == 1);
    forget_new_services(connection, first_ends.map(|(service, _)| service.as_str()))?;
    let ended_at = |lane: &&Lane| {
        let batch = (lane.batch_seq, lane.service_id.clone(), lane.position?);
        let stops = Stops::by_policy(scheduler, &lane.service_id, lane.progress.state);
        Some(Ended { batch, stops })
    };
    let positioned: Vec<Ended> = ended.iter().filter_map(ended_at).collect();
    let with_next = follow_ends(connection, scheduler, &positioned, now)?;
    let followed = ended.iter().filter(|lane| with_next.contains(&lane.service_id));
    Ok(followed.map(|lane| lane.key()).collect())
}

/// Writes lanes whose batches are open.
pub(crate) fn write_open(connection: &mut Connection, lanes: &[&Lane]) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- write_lanes
         update lanes as s
         set submitted = x.submitted, dlt_status = x.dlt_status, commit_proven = x.commit_proven,
             earlier_may_arrive = x.earlier_may_arrive, invalid_reported = x.invalid_reported,
             submitted_at = x.submitted_at, since = x.since, checked_at = x.checked_at,
             next_try_at = x.next_try_at, delays = x.delays, delayed_since = x.delayed_since,
             refusals = x.refusals, not_accepted = x.not_accepted, last_error = x.last_error,
             held_at = x.held_at, held_reason = x.held_reason,
             held_until_decision = x.held_until_decision, pool_parked = x.pool_parked
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
            .bool("held_until_decision", lanes.iter().map(|lane| lane.is_held_until_decision()))
            .bool("pool_parked", lanes.iter().map(|lane| lane.delay.pool_parked))
            .in_chunks(),
    );
    expect_all(connection.execute(&statement)?, lanes.len())
}

/// The rows are locked, so if fewer than expected were written, the lock does not work.
fn expect_all(written: usize, expected: usize) -> Result<(), StoreError> {
    if written == expected {
        Ok(())
    } else {
        Err(StoreError::corrupt(format!("only {written} of {expected} rows that were just locked")))
    }
}

/// Writes batches that end.
pub(super) fn end(
    connection: &mut Connection,
    hooks: &dyn BatchHooks,
    lanes: &[&Lane],
    now: Timestamp,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- end_batches
         update batches
         set ended_at = x.ended_at, dlt_status = x.dlt_status, attempts = x.attempts,
             submitted_at = x.submitted_at, checked_at = x.checked_at, last_error = x.last_error
         from {x}
         where batches.seq = x.batch_seq and batches.ended_at is null",
    )
    .rows(
        Rows::default()
            .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
            .long("ended_at", lanes.iter().map(|_| now.as_micros()))
            .optional_text("dlt_status", lanes.iter().map(|lane| lane.dlt_status()))
            .int("attempts", lanes.iter().map(|lane| attempts(lane.progress.attempts)))
            .optional_long("submitted_at", lanes.iter().map(|lane| lane.submitted_at))
            .optional_long("checked_at", lanes.iter().map(|lane| lane.checked_at))
            .optional_text("last_error", lanes.iter().map(|lane| lane.last_error.as_deref()))
            .in_chunks(),
    );
    expect_all(connection.execute(&statement)?, lanes.len())?;
    let ended = |lane: &&Lane| EndedBatch {
        seq: lane.batch_seq,
        id: lane.batch_id,
        state: lane.progress.state,
    };
    hooks.ended(connection, &lanes.iter().map(ended).collect::<Vec<_>>(), now)
}

/// The next head is the first open batch after the one that ended. `created_at` only increases, so no older batch can
/// be added. A batch that was stored before the database was restored may have been sent in the time that was lost.
fn install_next_heads(
    connection: &mut Connection,
    ended: &[&Lane],
) -> Result<Vec<NextHeadRow>, StoreError> {
    let heads: Vec<NextHeadRow> = connection.load_rows(
        format!(
            "-- install_next_heads
             update lanes
             set (batch_seq, batch_id, created_at) = (
                     select n.seq, n.batch_id, n.created_at from batches n
                     where n.service_id = lanes.service_id
                         and n.created_at > lanes.created_at and n.ended_at is null
                     order by n.service_id, n.created_at limit 1),
                 {NO_PROGRESS}, {COUNT_END}
             from {{x}}
             where lanes.service_id = x.service_id and lanes.lane = x.lane
                 and lanes.batch_seq = x.batch_seq
             returning lanes.service_id, lanes.lane, lanes.batch_id, coalesce(
                     lanes.batch_seq <= (select d.restored_seq from database_state d where d.id = 1),
                     false) as restored, lanes.batch_seq,
                 (select count(*) from waiting_holds w where w.batch_seq = lanes.batch_seq) > 0 as held,
                 lanes.ended"
        ),
        ended_rows(ended),
    )?;
    expect_all(heads.len(), ended.len())?;
    Ok(heads)
}

/// Sets the progress of a lane to that of a batch that was never tried.
const NO_PROGRESS: &str = "submitted = false, dlt_status = null, commit_proven = false,
             earlier_may_arrive = false, invalid_reported = false, attempts = 0,
             submitted_at = null, since = null, checked_at = null, next_try_at = null, last_error = null,
             delays = 0, delayed_since = null, refusals = 0, not_accepted = 0,
             held_at = null, held_reason = null, held_until_decision = false, pool_parked = false";

/// Counts a batch that has ended in a lane.
const COUNT_END: &str = "ended = lanes.ended + 1, last_committed_seq = case
                 when x.committed then lanes.batch_seq else lanes.last_committed_seq end";

/// Empties the lanes of batches that ended. Returns the service of each lane, and how many batches have ended in it.
fn clear_lanes(
    connection: &mut Connection,
    ended: &[&Lane],
) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = connection.load_row_tuples(
        format!(
            "-- clear_lanes
             update lanes
             set batch_seq = null, batch_id = null, created_at = null, position = null,
                 blocker_seq = null, {NO_PROGRESS}, {COUNT_END}
             from {{x}}
             where lanes.service_id = x.service_id and lanes.lane = x.lane
                 and lanes.batch_seq = x.batch_seq
             returning lanes.service_id, lanes.ended"
        ),
        ended_rows(ended),
    )?;
    expect_all(rows.len(), ended.len())?;
    Ok(rows)
}

fn ended_rows<'a>(lanes: &[&'a Lane]) -> Rows<'a> {
    let is_committed = |lane: &&Lane| lane.progress.state == BatchState::Committed;
    lane_rows(lanes).bool("committed", lanes.iter().map(is_committed)).in_chunks()
}

fn lane_rows<'a>(lanes: &[&'a Lane]) -> Rows<'a> {
    Rows::default()
        .text("service_id", lanes.iter().map(|lane| lane.service_id.as_str()))
        .int("lane", lanes.iter().map(|lane| lane.lane))
        .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq))
}

result_row! {
    /// The head of a lane.
    struct NextHeadRow {
        service_id: String,
        lane: i32,
        batch_id: Option<Vec<u8>>,
        restored: bool,
        batch_seq: Option<i64>,
        held: bool,
        /// The number of batches that ended in the lane.
        ended: i64,
    }
}

/// Records that services are no longer new, because a batch of each has ended.
pub(super) fn forget_new_services<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a str>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- forget_new_services
         delete from new_services where service_id in (select x.service_id from {x})",
        Rows::default().text("service_id", services),
    )
}
