//! Ends batches that wait behind others, so that they are in no lane.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Event};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{
    AttemptLog,
    free::{Ended, follow_ends},
    lane::Lane,
    write::{end, forget_new_services},
};
use crate::{
    halts::{Stops, stop_in_order},
    missing::remove_missing,
    scheduling::{insert_changed, load_positions, remove_waiting},
    sql::{Connection, Rows, Scheduler, StoreError},
};

/// The end of a waiting batch.
pub(crate) struct WaitingEnd<'a> {
    pub(crate) batch_seq: i64,
    /// That it was submitted, if it was sent before its turn.
    pub(crate) submitted: Option<&'a Change>,
    /// What ends it.
    pub(crate) change: &'a Change,
    /// Whether it stops others; `None`: by the policy of its service.
    pub(crate) stops: Option<Stops>,
}

/// Ends a batch that waits behind another one of its locked service. The policy of the service decides whether it stops
/// others.
pub(crate) fn end_waiting(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batch_seq: i64,
    change: &Change,
    now: Timestamp,
) -> Result<ChangeOutcome, StoreError> {
    let ended = WaitingEnd { batch_seq, submitted: None, change, stops: None };
    let outcomes = end_all_waiting(connection, scheduler, &[ended], now)?;
    outcomes.first().copied().ok_or_else(|| StoreError::corrupt("no answer to a change"))
}

/// Ends batches that wait behind others of their locked services.
pub(crate) fn end_all_waiting(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ends: &[WaitingEnd<'_>],
    now: Timestamp,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let mut log = AttemptLog::default();
    let mut lanes = Vec::new();
    let mut outcomes = Vec::new();
    for WaitingEnd { batch_seq, submitted, change, stops } in ends {
        let Change { service_id, batch_id, .. } = change;
        let mut lane = Lane::of_waiting(service_id.clone(), *batch_id, *batch_seq);
        let applied = submitted.iter().chain([change]).try_for_each(|change| {
            let applied = lane.apply(change, now)?;
            log.add(&lane, change, applied, now);
            Ok(())
        });
        let state = lane.progress().state;
        outcomes.push((service_id, applied.map(|()| state)));
        if applied.is_ok() {
            let by_policy = || Stops::by_policy(scheduler, service_id, state);
            lanes.push((lane, stops.unwrap_or_else(by_policy)));
        }
    }
    let ended: Vec<&Lane> = lanes.iter().map(|(lane, _)| lane).collect();
    end(connection, scheduler.hooks(), &ended, now)?;
    count_ended(connection, &ended)?;
    forget_new_services(connection, ended.iter().map(|lane| lane.service_id.as_str()))?;
    log.write(connection, scheduler.events(), now)?;
    let with_next = leave_index(connection, scheduler, &lanes, now)?;
    let outcome = |(service_id, state): (&ServiceId, Result<_, _>)| match state {
        Ok(state) => ChangeOutcome::Applied { state, next_waits: with_next.contains(service_id) },
        Err(stale) => ChangeOutcome::Stale(stale),
    };
    Ok(outcomes.into_iter().map(outcome).collect())
}

/// Ends the batches that follow these, which have just ended and stop none, if they were sent before their turns and
/// are committed. Each gets the history of a batch that was submitted and answered as committed.
pub(super) fn end_committed_ahead(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ended: &[&Lane],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut ahead = Vec::new();
    for lane in ended {
        let Lane { service_id, batch_id, batch_seq, .. } = lane;
        if Stops::by_policy(scheduler, service_id, lane.progress().state) == Stops::Nothing {
            let hooks = scheduler.hooks();
            let following = hooks.committed_ahead(connection, service_id, batch_id, *batch_seq)?;
            ahead.extend(following.into_iter().map(|(seq, id)| (seq, committed(service_id, id))));
        }
    }
    if ahead.is_empty() {
        return Ok(());
    }
    let ends: Vec<WaitingEnd<'_>> = ahead
        .iter()
        .map(|(batch_seq, [submitted, change])| WaitingEnd {
            batch_seq: *batch_seq,
            submitted: Some(submitted),
            change,
            stops: None,
        })
        .collect();
    end_all_waiting(connection, scheduler, &ends, now)?;
    scheduler.add_ended(ahead.iter().map(|(_, [it, _])| (it.batch_id, BatchState::Committed)));
    Ok(())
}

/// The changes of a batch that is submitted and answered as committed.
fn committed(service_id: &ServiceId, batch_id: ItemId) -> [Change; 2] {
    let answered = Event::Outcome { attempt: 1, outcome: Outcome::Committed };
    [Event::Taken, answered].map(|event| Change::new(service_id.clone(), batch_id, event))
}

/// Counts the batches as ended, in the first lanes of their services.
fn count_ended(connection: &mut Connection, ended: &[&Lane]) -> Result<(), StoreError> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for lane in ended {
        *counts.entry(lane.service_id.as_str()).or_default() += 1;
    }
    connection.execute_rows(
        "-- count_ended
         update lanes set ended = lanes.ended + x.count
         from {x} where lanes.service_id = x.service_id and lanes.lane = (
             select min(s.lane) from lanes s where s.service_id = x.service_id)",
        Rows::default()
            .text("service_id", counts.keys().copied())
            .long("count", counts.values().copied()),
    )
}

/// Removes ended batches from the index of waiting batches. Returns the services that got a next batch.
fn leave_index(
    connection: &mut Connection,
    scheduler: &Scheduler,
    lanes: &[(Lane, Stops)],
    now: Timestamp,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let seqs = || lanes.iter().map(|(lane, _)| lane.batch_seq);
    let positions: HashMap<i64, Option<i64>> = load_positions(connection, seqs())?;
    if positions.is_empty() {
        stop_in_order(connection, lanes.iter().map(|(lane, stops)| (lane.batch_seq, *stops)), now)?;
        return Ok(BTreeSet::new());
    }
    remove_waiting(connection, positions.keys().copied())?;
    remove_missing(connection, positions.keys().copied())?;
    // For batches without a position, only batches that miss their transactions can be waiting.
    let unpositioned = positions.iter().filter(|row| row.1.is_none()).map(|(seq, _)| *seq);
    insert_changed(connection, scheduler, unpositioned, now)?;
    let ended = |(lane, stops): &(Lane, Stops)| {
        let position = positions.get(&lane.batch_seq).copied().flatten()?;
        let batch = (lane.batch_seq, lane.service_id.clone(), position);
        Some(Ended { batch, stops: *stops })
    };
    let ended: Vec<Ended> = lanes.iter().filter_map(ended).collect();
    follow_ends(connection, scheduler, &ended, now)
}
