//! The job for invalid batches that stop others. If an operator has decided so, it ends the batches that follow, with
//! one commit per step.

use std::collections::BTreeSet;

use grid_batch_core::events::EventKind;
use grid_batch_core::queue::Strategy;
use grid_batch_core::{ItemId, ServiceId};

use super::table::{StoredHalt, find_ending, next_service_that_ends, remove_halts, set_position};
use crate::{
    batch::{
        ActionNote, AttemptLog, BatchKey, Unsendable, end_unsendable, lock_lanes,
        release_following, with_locked, write_open,
    },
    scheduling::{EndReason, Positioned, find_waiting_in_order},
    sql::{
        Connection, Statement, Store, StoreError, result_row,
        rows::{batch_id, limit},
    },
    submission::FreedDependents,
};

/// The number of batches that end, or halts that are removed, in one commit.
const STEP: usize = 256;

/// Why an absent batch is held: it must not end before an operator has decided.
const MAY_ARRIVE: &str = "an operator ended what follows an invalid batch, and this one was sent: the ledger \
     does not have it, but an earlier attempt may still arrive; decide about it when none can arrive any more";

/// Does a step for each service in which batches that follow an invalid batch are to end. A service that stays locked
/// is left for the next time.
pub(crate) fn finish_halts(store: &Store, freed: &mut FreedDependents) -> Result<(), StoreError> {
    let positioned = store.scheduler.keeps_positions();
    let mut after = String::new();
    loop {
        let next = next_service_that_ends(&mut *store.pools.read()?, &after, positioned)?;
        let Some(service_id) = next else { return Ok(()) };
        match finish_step(store, &service_id, positioned, &mut freed.ready) {
            Ok(more) => freed.more |= more,
            Err(StoreError::Locked { .. }) => {}
            Err(error) => return Err(error),
        }
        after = service_id.to_string();
    }
}

/// Does a step for one service. Returns whether anything was done, so that there may be more to do.
fn finish_step(
    store: &Store,
    service_id: &ServiceId,
    positioned: bool,
    ready: &mut BTreeSet<ServiceId>,
) -> Result<bool, StoreError> {
    let service = BTreeSet::from([service_id.clone()]);
    with_locked(store, &service, |connection, free| {
        if free.is_empty() {
            return Ok(false);
        }
        let (following, finished) = if store.scheduler.strategy(service_id).keeps_order() {
            find_following(connection, service_id, positioned)?
        } else {
            (None, find_finished(connection, service_id)?)
        };
        if let Some(following) = &following {
            following.end(store, connection)?;
        }
        if !finished.is_empty() {
            remove_halts(connection, finished.iter().map(|batch| batch.0))?;
            ready.extend(go_on(store, connection, service_id, positioned, &finished)?);
        }
        Ok(following.is_some() || !finished.is_empty())
    })
}

/// Lets batches of a locked service continue that were stopped by these invalid batches, which no longer stop anything.
/// Returns the service if it may have a next batch.
fn go_on(
    store: &Store,
    connection: &mut Connection,
    service_id: &ServiceId,
    positioned: bool,
    over: &[Positioned],
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let services = BTreeSet::from([service_id.clone()]);
    if positioned {
        release_following(connection, &store.scheduler, over, services, store.now())
    } else {
        // The next batch of the service is in its lane already.
        Ok(services)
    }
}

/// The halts of a parallel service whose followers have all ended. Batches that wait for the invalid batch end when
/// they are evaluated again.
fn find_finished(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<Positioned>, StoreError> {
    let first = find_waiting_in_order(connection, service_id, i64::MIN, i64::MAX, 1)?;
    let first = first.first().map_or(i64::MAX, |(_, _, position)| *position);
    let finished = find_ending(connection, service_id, first, STEP)?;
    Ok(finished.into_iter().map(|halt| halt.batch).collect())
}

/// The batches that follow an invalid batch in a service that submits in order, and end now.
struct Following {
    ending: Vec<Unsendable>,
    /// Batches that were sent, so that an operator must decide about them.
    held: Vec<BatchKey>,
}

/// The batches that end next in a service that submits in order, and the halts whose followers have all ended. Batches
/// that may be at the ledger must end first.
fn find_following(
    connection: &mut Connection,
    service_id: &ServiceId,
    positioned: bool,
) -> Result<(Option<Following>, Vec<Positioned>), StoreError> {
    let mut finished = Vec::new();
    for StoredHalt { batch, ends_until } in find_ending(connection, service_id, i64::MAX, STEP)? {
        let until = ends_until.unwrap_or(batch.2);
        let in_lanes = find_in_lanes(connection, service_id, batch.2, until)?;
        let waiting = if positioned {
            find_waiting_in_order(connection, service_id, batch.2, until, STEP)?
        } else {
            let after = in_lanes.first().map_or(batch.2, |lane| lane.position);
            find_open_behind(connection, service_id, after, until, STEP)?
        };
        if waiting.is_empty() && in_lanes.is_empty() {
            finished.push(batch);
            continue;
        }
        // Open batches of a service with one lane are searched among all batches, so the search begins after those that
        // ended.
        if let Some(last) = waiting.last().filter(|_| !positioned && in_lanes.is_empty()) {
            set_position(connection, batch.0, last.2)?;
        }
        let following = Following::of(service_id, &waiting, &in_lanes, until);
        if !following.ending.is_empty() || !following.held.is_empty() {
            return Ok((Some(following), finished));
        }
    }
    Ok((None, finished))
}

impl Following {
    fn of(service_id: &ServiceId, waiting: &[Positioned], in_lanes: &[InLane], until: i64) -> Self {
        let unsent = || in_lanes.iter().filter(|lane| !lane.submitted);
        let in_lanes = unsent().filter(|lane| !lane.may_arrive).map(|lane| lane.batch_seq);
        let ending = waiting.iter().map(|(seq, ..)| *seq).chain(in_lanes);
        let held = unsent().filter(|lane| lane.may_arrive && !lane.held);
        Self {
            ending: ending.map(|seq| (seq, EndReason::Halt { until })).collect(),
            held: held.map(|lane| (service_id.clone(), lane.batch_id)).collect(),
        }
    }

    fn end(&self, store: &Store, connection: &mut Connection) -> Result<(), StoreError> {
        let now = store.now();
        end_unsendable(connection, &store.scheduler, &self.ending, now)?;
        let mut log = AttemptLog::default();
        let mut lanes = lock_lanes(connection, &self.held.iter().cloned().collect())?;
        for lane in lanes.values_mut() {
            lane.hold_by_operator(MAY_ARRIVE, now);
            let reason = Some("what follows an invalid batch was ended");
            log.add_action(lane, ActionNote { kind: EventKind::Held, action: "held", reason }, now);
        }
        write_open(connection, &lanes.values().collect::<Vec<_>>())?;
        log.write(connection, store.scheduler.events(), now)
    }
}

/// A batch in a lane.
#[derive(Debug, Clone, Copy)]
struct InLane {
    batch_seq: i64,
    /// Its position in the order of its service.
    position: i64,
    batch_id: ItemId,
    /// Whether it is with a submitter or may be at the ledger.
    submitted: bool,
    /// Whether it was found to be absent but an earlier attempt may still arrive at the ledger.
    may_arrive: bool,
    held: bool,
}

/// The batches in lanes of a service with positions after `after` and up to `until`.
fn find_in_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    after: i64,
    until: i64,
) -> Result<Vec<InLane>, StoreError> {
    let statement = Statement::new(
        "-- find_following_in_lanes
         select s.batch_seq, coalesce(s.position, s.created_at) as position, s.batch_id, s.submitted,
             s.earlier_may_arrive, s.held_until_decision
         from lanes s
         where s.service_id = ? and s.busy and coalesce(s.position, s.created_at) > ?
             and coalesce(s.position, s.created_at) <= ?",
    )
    .text(service_id.as_str())
    .long(after)
    .long(until);
    let rows: Vec<InLaneRow> = connection.load(&statement)?;
    rows.iter().map(InLaneRow::read).collect()
}

/// Up to `count` open batches of a service with one lane that were stored after `after` and up to `until`, in
/// order.
fn find_open_behind(
    connection: &mut Connection,
    service_id: &ServiceId,
    after: i64,
    until: i64,
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        "-- find_open_behind
         select b.seq, b.created_at from batches b
         where b.service_id = ? and b.created_at > ? and b.created_at <= ? and b.ended_at is null
         order by b.service_id, b.created_at limit ?",
    )
    .text(service_id.as_str())
    .long(after)
    .long(until)
    .long(limit(count));
    let rows: Vec<(i64, i64)> = connection.load_tuples(&statement)?;
    Ok(rows.into_iter().map(|(seq, created_at)| (seq, service_id.clone(), created_at)).collect())
}

result_row! {
    struct InLaneRow {
        batch_seq: i64,
        position: i64,
        batch_id: Vec<u8>,
        submitted: bool,
        earlier_may_arrive: bool,
        held_until_decision: bool,
    }
}

impl InLaneRow {
    fn read(&self) -> Result<InLane, StoreError> {
        Ok(InLane {
            batch_seq: self.batch_seq,
            position: self.position,
            batch_id: batch_id(&self.batch_id)?,
            submitted: self.submitted,
            may_arrive: self.earlier_may_arrive,
            held: self.held_until_decision,
        })
    }
}
