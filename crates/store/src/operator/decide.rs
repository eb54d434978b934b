use diesel::prelude::*;
use grid_batch_core::{
    Change, ChangeOutcome, Decision, Event, HeaderId, OperatorDecision, ServiceId, Stale,
    StoredBatch, TransitionError,
};

use super::details::find_one;
use crate::{
    batch::{AttemptLog, REFUSED, end_waiting, lock_services, record_locked},
    sql::{Connection, Store, StoreError, schema::withdrawals},
};

pub(crate) fn decide(
    store: &Store,
    service_id: &ServiceId,
    batch_id: &HeaderId,
    attempt: u32,
    decided: &OperatorDecision,
) -> Result<ChangeOutcome, StoreError> {
    store.pools.write()?.write_transaction(|connection| {
        lock_services(connection, [service_id])?;
        let Some(record) = find_one(connection, service_id, batch_id)? else {
            return Ok(ChangeOutcome::NotFound);
        };
        let (seq, waits_behind_another) = (record.seq(), record.waits_behind_another());
        let batch = record.into_batch()?;
        if let Some(refusal) = refusal(connection, seq, &batch, attempt, decided.decision)? {
            return Ok(ChangeOutcome::Stale(refusal));
        }
        let change = change(&batch, attempt, decided);
        if waits_behind_another {
            return end_waiting(connection, &store.scheduler, seq, &change, store.now());
        }
        let changes = [change];
        let recorded = record_locked(
            connection,
            &store.scheduler,
            &changes,
            AttemptLog::default(),
            store.now(),
        )?;
        recorded.last().copied().ok_or_else(|| StoreError::corrupt("no answer to a change"))
    })
}

/// Why a decision cannot be recorded, for an operator. `transition` refuses it as well, in general
/// words.
fn refusal(
    connection: &mut Connection,
    seq: i64,
    batch: &StoredBatch,
    attempt: u32,
    decision: Decision,
) -> Result<Option<Stale>, StoreError> {
    let (state, present) = (batch.progress.state, batch.progress.attempts);
    let is_refused = batch.held.as_ref().is_some_and(|hold| hold.reason.starts_with(REFUSED));
    let waits_for_decision = batch.held.is_some() && (state.awaits_poller() || is_refused);
    Ok(if state.is_terminal() {
        Some(TransitionError::Ended { state }.into())
    } else if attempt != present {
        Some(Stale::DecidedOtherAttempt { given: attempt, present })
    } else if !state.awaits_queuer() && !state.awaits_poller() {
        Some(Stale::WithSubmitter)
    } else if !waits_for_decision && is_of_withdrawal(connection, seq)? {
        Some(Stale::Withdrawal)
    } else if decision == Decision::Absent && state.awaits_queuer() {
        Some(Stale::NotAtLedger { state })
    } else {
        None
    })
}

fn is_of_withdrawal(connection: &mut Connection, seq: i64) -> Result<bool, StoreError> {
    let query =
        withdrawals::table.filter(withdrawals::batch_seq.eq(seq)).select(withdrawals::batch_seq);
    let found: Vec<i64> = connection.load_query("is_of_withdrawal", query)?;
    Ok(!found.is_empty())
}

fn change(batch: &StoredBatch, attempt: u32, decided: &OperatorDecision) -> Change {
    let OperatorDecision { decision, reason } = decided;
    let text = match decision {
        Decision::Invalid if batch.progress.state.awaits_queuer() => {
            Some("an operator decided that it is not sent to the ledger")
        }
        Decision::Invalid => Some("an operator decided that the ledger rejected it"),
        Decision::Committed | Decision::Absent => None,
    };
    let error = match (text, reason) {
        (Some(text), Some(reason)) => Some(format!("{text}: {reason}")),
        (text, reason) => text.map(str::to_owned).or_else(|| reason.clone()),
    };
    let event = Event::Decided { attempt, decision: *decision };
    Change { error, ..Change::new(batch.service_id.clone(), batch.batch_id, event) }
}
