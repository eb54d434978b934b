use std::{collections::BTreeSet, iter};

use grid_batch_core::{ChangeOutcome, EventKind, Stale, Timestamp, TransitionError};

use super::batch_actions::LockedBatch;
use crate::{
    batch::{
        ActionNote, AttemptLog, BatchKey, Lane, NOT_PROVED_NEW, fill_after_holds, hold_waiting,
        lock_lanes, log_without_lane, release_waiting, write_held,
    },
    missing::{give_positions_if_complete, release_overdue},
    service_history::declare_new,
    sql::{Connection, Store, StoreError},
};

/// Holds an open batch until an operator decides or releases it. A batch that is with a submitter is
/// not sent again after this attempt.
pub(super) fn hold(
    store: &Store,
    connection: &mut Connection,
    locked: &LockedBatch,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let text = format!("held by an operator: {}", reason.unwrap_or("no reason was given"));
    let note = ActionNote { kind: EventKind::Held, action: EventKind::Held.as_str(), reason };
    change_hold(store, connection, locked, note, |connection, held, now| {
        match held {
            HeldBatch::Head(lane) => lane.hold_by_operator(&text, now),
            HeldBatch::Waiting(seq) => hold_waiting(connection, seq, &text, now)?,
        }
        Ok(true)
    })
}

/// Ends the hold of a batch, also one that the server began.
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
                write_held(connection, lane)?;
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
