use diesel::prelude::*;
use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Decision, Event, Stale, StoredBatch, TransitionError,
};

use super::{batch_actions::LockedBatch, different_states::states_differ};
use crate::{
    batch::{AttemptLog, REFUSED, end_waiting, record_locked},
    sql::{Connection, Store, StoreError, schema::database_state},
};

pub(super) fn decide(
    store: &Store,
    connection: &mut Connection,
    locked: &LockedBatch,
    attempt: u32,
    decision: Decision,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let LockedBatch { seq, batch, .. } = locked;
    if let Some(refusal) = refusal(store, connection, *seq, batch, attempt, decision)? {
        return Ok(ChangeOutcome::Stale(refusal));
    }
    let change = change(batch, attempt, decision, reason);
    if locked.waits_behind_another {
        return end_waiting(connection, &store.scheduler, *seq, &change, store.now());
    }
    let (scheduler, now) = (&store.scheduler, store.now());
    let recorded = record_locked(connection, scheduler, &[change], AttemptLog::default(), now)?;
    recorded.last().copied().ok_or_else(|| StoreError::corrupt("no answer to a change"))
}

/// Ends a batch as invalid that the ledger certainly does not have.
pub(super) fn cancel(
    store: &Store,
    connection: &mut Connection,
    locked: &LockedBatch,
    reason: Option<&str>,
) -> Result<ChangeOutcome, StoreError> {
    let progress = locked.batch.progress;
    let state = progress.state;
    let is_open = !state.is_terminal() && state != BatchState::Submitting;
    let may_be_at_ledger = state.awaits_poller() || progress.earlier_may_arrive;
    // A batch that waits is put in doubt when its turn comes if its database went back since.
    let may_be_at_ledger = may_be_at_ledger
        || (locked.waits_behind_another && Some(locked.seq) <= restored_seq(connection)?);
    if is_open && may_be_at_ledger {
        return Ok(ChangeOutcome::Stale(Stale::MayBeAtLedger { state }));
    }
    decide(store, connection, locked, progress.attempts, Decision::Invalid, reason)
}

/// The last batch that was stored when the database went back.
fn restored_seq(connection: &mut Connection) -> Result<Option<i64>, StoreError> {
    let query = database_state::table.find(1).select(database_state::restored_seq);
    let found: Vec<Option<i64>> = connection.load_query("restored_seq_of_cancelled", query)?;
    Ok(found.first().copied().flatten())
}

/// Why a decision cannot be recorded, for an operator. `transition` refuses it as well, in general
/// words.
fn refusal(
    store: &Store,
    connection: &mut Connection,
    seq: i64,
    batch: &StoredBatch,
    attempt: u32,
    decision: Decision,
) -> Result<Option<Stale>, StoreError> {
    let (state, present) = (batch.progress.state, batch.progress.attempts);
    let is_refused = batch.held.as_ref().is_some_and(|hold| hold.reason.starts_with(REFUSED));
    let hooks = store.scheduler.hooks();
    let waits_for_decision = batch.held.is_some() && (state.awaits_poller() || is_refused);
    Ok(if state.is_terminal() {
        Some(TransitionError::Ended { state }.into())
    } else if attempt != present {
        Some(Stale::DecidedOtherAttempt { given: attempt, present })
    } else if !state.awaits_queuer() && !state.awaits_poller() {
        Some(Stale::WithSubmitter)
    } else if !waits_for_decision && hooks.is_of_withdrawal(connection, seq)? {
        Some(Stale::Withdrawal)
    } else if decision == Decision::Absent && state.awaits_queuer() {
        Some(Stale::NotAtLedger { state })
    } else if decision == Decision::Absent && states_differ(connection, &batch.service_id)? {
        Some(Stale::StatesDiffer)
    } else {
        None
    })
}

fn change(batch: &StoredBatch, attempt: u32, decision: Decision, reason: Option<&str>) -> Change {
    let text = match decision {
        Decision::Invalid if batch.progress.state.awaits_queuer() => {
            Some("an operator decided that it is not sent to the ledger")
        }
        Decision::Invalid => Some("an operator decided that the ledger rejected it"),
        Decision::Committed | Decision::Absent => None,
    };
    let error = match (text, reason) {
        (Some(text), Some(reason)) => Some(format!("{text}: {reason}")),
        (text, reason) => text.or(reason).map(str::to_owned),
    };
    let event = Event::Decided { attempt, decision };
    Change { error, ..Change::new(batch.service_id.clone(), batch.batch_id, event) }
}
