//! What an operator does with one batch.

use grid_batch_core::{
    ActionEffect, ActionOutcome, ActionRefusal, BatchState, Change, ChangeOutcome, Decision, Event,
    Evidence, ItemId, OperatorAction, OperatorVerb, Progress, ServiceId, StoredBatch,
};

use super::{
    decide::{cancel, decide},
    details::find_one,
    hold::{hold, release},
    retry::end_delay,
};
use crate::{
    batch::{AttemptLog, lock_services, record_locked},
    halts::{continue_after, end_following},
    sql::{Connection, Store, StoreError},
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

/// Does what an operator asks for with one batch.
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

/// Makes a batch due that waited for a decision about something else, such as a nonce of its account. A batch that is
/// in doubt is sent again only if it was `never_sent`. Returns whether the batch may be sent.
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
