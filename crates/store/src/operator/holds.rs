//! Holds of batches: queries and actions of operators.

use std::{
    collections::{BTreeSet, HashMap},
    iter,
};

use diesel::prelude::*;
use grid_batch_core::batches::{ChangeOutcome, Hold, Stale, StoredBatch, TransitionError};
use grid_batch_core::events::EventKind;
use grid_batch_core::{ServiceId, Timestamp};

use super::batch_actions::LockedBatch;
use crate::{
    batch::{
        ActionNote, AttemptLog, BatchKey, Lane, NOT_PROVED_NEW, fill_after_holds, hold_waiting,
        lock_lanes, log_without_lane, release_waiting, write_open,
    },
    missing::{give_positions_if_complete, release_overdue},
    service_history::declare_new,
    sql::{
        Connection, Store, StoreError,
        query::{BatchRecord, into_batches, lane_holds_batch},
        rows::limit,
        schema::{batches, lanes, waiting_holds},
    },
};

impl Store {
    /// Up to `count` held batches of services after `after`, ordered by the names of their services.
    pub fn held_batches(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let held = || {
            lanes::table
                .inner_join(batches::table.on(lane_holds_batch()))
                .filter(lanes::busy)
                .filter(lanes::held_at.is_not_null())
                .order_by((lanes::service_id, lanes::lane))
        };
        self.pools.read()?.snapshot(|connection| {
            let page = held()
                .filter(lanes::service_id.gt(after.map_or("", ServiceId::as_str)))
                .limit(limit(count))
                .select((lanes::lane, BatchRecord::as_select()));
            let page: Vec<(i32, BatchRecord)> = connection.load_query("held_batches", page)?;
            let last = page.last().map_or(0, |(lane, _)| *lane);
            let is_full = page.len() >= count;
            let mut batches = into_batches(page.into_iter().map(|(_, batch)| batch).collect())?;
            // The next page begins after the last service.
            if let Some(batch) = batches.last().filter(|_| is_full) {
                let rest = held()
                    .filter(lanes::service_id.eq(batch.service_id.as_str()))
                    .filter(lanes::lane.gt(last))
                    .select(BatchRecord::as_select());
                let rest = connection.load_query("held_batches_of", rest)?;
                batches.extend(into_batches(rest)?);
            }
            Ok(batches)
        })
    }

    /// The held batches that wait behind another one of their service, in the order in which they were stored. Their
    /// holds begin when it is their turn.
    pub fn waiting_holds(&self) -> Result<Vec<StoredBatch>, StoreError> {
        let query = waiting_holds::table
            .inner_join(batches::table.left_join(lanes::table.on(lane_holds_batch())))
            .filter(waiting_holds::batch_seq.gt(0))
            .filter(batches::ended_at.is_null())
            .order_by(waiting_holds::batch_seq)
            .select((waiting_holds::held_at, waiting_holds::held_reason, BatchRecord::as_select()));
        let rows: Vec<(i64, String, BatchRecord)> =
            self.pools.read()?.load_query("waiting_holds", query)?;
        rows.into_iter()
            .map(|(at, reason, record)| with_waiting_hold(record, Some(waiting_hold(at, reason))))
            .collect()
    }
}

/// A batch with its hold. If the batch waits behind another one, the hold is not stored in a lane.
pub(crate) fn with_waiting_hold(
    record: BatchRecord,
    hold: Option<Hold>,
) -> Result<StoredBatch, StoreError> {
    let batch = record.into_batch()?;
    Ok(StoredBatch { held: batch.held.or(hold), ..batch })
}

/// The hold of a batch that waits behind another one.
pub(super) fn load_waiting_hold(
    connection: &mut Connection,
    seq: i64,
) -> Result<Option<Hold>, StoreError> {
    let query = waiting_holds::table
        .filter(waiting_holds::batch_seq.eq(seq))
        .select((waiting_holds::held_at, waiting_holds::held_reason));
    let holds: Vec<(i64, String)> = connection.load_query("waiting_hold", query)?;
    Ok(holds.into_iter().next().map(|(at, reason)| waiting_hold(at, reason)))
}

/// The holds of these batches, if they are held and wait behind others, by the number of the batch.
pub(crate) fn waiting_holds_of(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<HashMap<i64, Hold>, StoreError> {
    let query = waiting_holds::table.filter(waiting_holds::batch_seq.eq_any(seqs)).select((
        waiting_holds::batch_seq,
        waiting_holds::held_at,
        waiting_holds::held_reason,
    ));
    let holds: Vec<(i64, i64, String)> = connection.load_query("waiting_holds_of", query)?;
    Ok(holds.into_iter().map(|(seq, at, reason)| (seq, waiting_hold(at, reason))).collect())
}

/// The hold in a row of `waiting_holds`.
pub(super) fn waiting_hold(held_at: i64, reason: String) -> Hold {
    Hold { since: Timestamp::from_micros(held_at), reason, until_decision: true }
}

/// The beginning of the reason of an operator's hold.
const BY_OPERATOR: &str = "held by an operator: ";

/// Holds an open batch until an operator decides or releases it. A batch that is with a submitter is
/// not sent again after this attempt.
pub(super) fn hold(
    store: &Store,
    connection: &mut Connection,
    locked: &LockedBatch,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let waiting = load_waiting_hold(connection, locked.seq)?;
    let mut holds = locked.batch.held.iter().chain(&waiting);
    if holds.any(|hold| hold.reason.starts_with(BY_OPERATOR)) {
        let state = locked.batch.progress.state;
        return Ok(ChangeOutcome::Stale(Stale::AlreadyHeld { state }));
    }
    let text = format!("{BY_OPERATOR}{}", reason.unwrap_or("no reason was given"));
    let note = ActionNote { kind: EventKind::Held, action: EventKind::Held.as_str(), reason };
    change_hold(store, connection, locked, note, |connection, held, now| {
        match held {
            HeldBatch::Head(lane) => lane.hold_by_operator(&text, now),
            HeldBatch::Waiting(seq) => hold_waiting(connection, seq, &text, now)?,
        }
        Ok(true)
    })
}

/// Ends the hold of a batch, even one that the server began.
pub(super) fn release(
    store: &Store,
    connection: &mut Connection,
    locked: &LockedBatch,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let service_id = &locked.batch.service_id;
    if locked.batch.held.as_ref().is_some_and(|hold| hold.reason.starts_with(NOT_PROVED_NEW)) {
        declare_new(connection, vec![locked.seq])?;
    }
    let note =
        ActionNote { kind: EventKind::Released, action: EventKind::Released.as_str(), reason };
    change_hold(store, connection, locked, note, |connection, held, now| match held {
        HeldBatch::Head(lane) => Ok(lane.release()),
        HeldBatch::Waiting(seq) => {
            let was_held = release_waiting(connection, seq)?;
            if was_held && release_overdue(connection, seq, now)? {
                let services = BTreeSet::from([service_id.clone()]);
                let batches = [(seq, service_id.clone())];
                let scheduler = &store.scheduler;
                give_positions_if_complete(connection, scheduler, &batches, &services, now)?;
            }
            Ok(was_held)
        }
    })
}

/// A batch whose hold is changed.
enum HeldBatch<'a> {
    /// The head of its service.
    Head(&'a mut Lane),
    /// A batch that waits behind another one, by its `seq`.
    Waiting(i64),
}

/// Changes the hold of an open batch and logs it. `change` returns whether it changed anything.
fn change_hold(
    store: &Store,
    connection: &mut Connection,
    LockedBatch { seq, batch, .. }: &LockedBatch,
    note: ActionNote<'_>,
    change: impl FnOnce(&mut Connection, HeldBatch<'_>, Timestamp) -> Result<bool, StoreError>,
) -> Result<ChangeOutcome, StoreError> {
    let state = batch.progress.state;
    if state.is_terminal() {
        return Ok(ChangeOutcome::Stale(TransitionError::Ended { state }.into()));
    }
    let now = store.now();
    let key: BatchKey = (batch.service_id.clone(), batch.batch_id);
    let mut lanes = lock_lanes(connection, &BTreeSet::from([key.clone()]))?;
    let mut next_waits = false;
    let changed = match lanes.get_mut(&key) {
        Some(lane) => {
            let changed = change(connection, HeldBatch::Head(lane), now)?;
            if changed {
                let mut log = AttemptLog::default();
                log.add_action(lane, note, now);
                write_open(connection, &[&*lane])?;
                log.write(connection, store.scheduler.events(), now)?;
                let held = iter::once(&*lane);
                next_waits = !fill_after_holds(connection, &store.scheduler, held, now)?.is_empty();
            }
            changed
        }
        None => {
            let changed = change(connection, HeldBatch::Waiting(*seq), now)?;
            if changed {
                log_without_lane(connection, store.scheduler.events(), batch, *seq, note, now)?;
            }
            changed
        }
    };
    Ok(if changed {
        ChangeOutcome::Applied { state, next_waits }
    } else {
        ChangeOutcome::Stale(Stale::NotHeld { state })
    })
}
