//! Actions of operators on one batch.

use diesel::prelude::*;
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, Progress, Stale, StoredBatch,
    TransitionError,
};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::operators::{
    ActionEffect, ActionOutcome, ActionRefusal, OperatorAction, OperatorVerb,
};
use grid_batch_core::{ItemId, ServiceId};

use super::{
    details::find_one,
    holds::{hold, release},
    pauses::states_differ,
    retry::end_delay,
};
use crate::{
    batch::{AttemptLog, REFUSED, end_waiting, lock_services, record_locked},
    halts::{continue_after, end_following},
    sql::{Connection, Store, StoreError, schema::database_state},
};

/// A batch of a locked service.
pub(super) struct LockedBatch {
    pub(super) seq: i64,
    pub(super) waits_behind_another: bool,
    pub(super) batch: StoredBatch,
}

impl LockedBatch {
    fn find(
        connection: &mut Connection,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> Result<Option<Self>, StoreError> {
        lock_services(connection, [service_id])?;
        let Some(record) = find_one(connection, service_id, batch_id)? else { return Ok(None) };
        let (seq, waits_behind_another) = (record.seq(), record.waits_behind_another());
        Ok(Some(Self { seq, waits_behind_another, batch: record.into_batch()? }))
    }
}

/// Does an operator's action on one batch.
pub(super) fn act_on_batch(
    store: &Store,
    connection: &mut Connection,
    action: &OperatorAction,
    service_id: &ServiceId,
    batch_id: &ItemId,
    attempt: Option<u32>,
) -> Result<ActionOutcome, StoreError> {
    let verb = action.verb;
    let Some(locked) = LockedBatch::find(connection, service_id, batch_id)? else {
        return Ok(ActionOutcome::NotFound);
    };
    let reason = action.reason.as_deref();
    let decision = match verb {
        OperatorVerb::Resubmit => Some(Decision::Absent),
        OperatorVerb::EndCommitted => Some(Decision::Committed),
        OperatorVerb::EndInvalid => Some(Decision::Invalid),
        _ => None,
    };
    let outcome = match (verb, decision, attempt) {
        (_, Some(decision), Some(attempt)) => {
            decide(store, connection, &locked, attempt, decision, reason)
        }
        (_, Some(_), None) => {
            return Ok(ActionOutcome::Refused(ActionRefusal::NoAttempt { verb }));
        }
        (OperatorVerb::Cancel, ..) => cancel(store, connection, &locked, reason),
        (OperatorVerb::Retry, ..) => end_delay(store, connection, &locked, reason),
        (OperatorVerb::Hold, ..) => hold(store, connection, &locked, reason),
        (OperatorVerb::Release, ..) => release(store, connection, &locked, reason),
        (OperatorVerb::Continue, ..) => {
            continue_after(store, connection, &locked.batch, locked.seq, reason)
        }
        (OperatorVerb::EndFollowing, ..) => {
            end_following(store, connection, &locked.batch, locked.seq, reason)
        }
        _ => return Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb })),
    };
    Ok(match outcome? {
        ChangeOutcome::Applied { state, next_waits } => ActionOutcome::Done(ActionEffect {
            before: before(&locked.batch),
            after: after(verb, state),
            state: Some(state),
            next_waits,
        }),
        ChangeOutcome::Stale(stale) => ActionOutcome::Refused(stale.into()),
        ChangeOutcome::NotFound => ActionOutcome::NotFound,
    })
}

fn before(batch: &StoredBatch) -> String {
    let state = batch.progress.state;
    match batch.held {
        Some(_) => format!("{state}, held"),
        None => state.to_string(),
    }
}

fn after(verb: OperatorVerb, state: BatchState) -> String {
    match verb {
        OperatorVerb::Hold => format!("{state}, held"),
        OperatorVerb::Retry => format!("{state}, ready"),
        OperatorVerb::Continue => format!("{state}, stops nothing"),
        OperatorVerb::EndFollowing => format!("{state}, what follows ends"),
        _ => state.to_string(),
    }
}

/// Makes a batch due that waited for a decision about something else, such as a nonce of its account. A batch in doubt
/// is sent again only if it was `never_sent`. Returns whether the batch may be sent.
pub(crate) fn try_again(
    store: &Store,
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
    never_sent: bool,
    reason: Option<&str>,
) -> Result<bool, StoreError> {
    let Some(locked) = LockedBatch::find(connection, service_id, batch_id)? else {
        return Ok(false);
    };
    let Progress { state, attempts, .. } = locked.batch.progress;
    let outcome = match state {
        BatchState::Delayed => end_delay(store, connection, &locked, reason)?,
        BatchState::InDoubt if never_sent => {
            let event = Event::Evidence { attempt: attempts, evidence: Evidence::Repeatable };
            let changes = [Change::new(service_id.clone(), *batch_id, event)];
            let (log, now) = (AttemptLog::default(), store.now());
            let recorded = record_locked(connection, &store.scheduler, &changes, log, now)?;
            return Ok(recorded.iter().any(|it| matches!(it, ChangeOutcome::Applied { .. })));
        }
        _ => return Ok(false),
    };
    Ok(matches!(outcome, ChangeOutcome::Applied { next_waits: true, .. }))
}

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

/// Ends a batch that the ledger certainly does not have as invalid.
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
    // If the database went back since a waiting batch was stored, the batch is put in doubt when its turn comes.
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

/// Why a decision cannot be recorded, in words for an operator. `transition` also refuses it, but with a general
/// message.
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
