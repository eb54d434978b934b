use grid_batch_core::{
    BatchDetails, FailedAttempt, Hold, PossibleAction, Receipt, StoredBatch, Timestamp,
};
use serde_json::{Value, json};

/// What is stored of a batch itself.
pub(in crate::commands) fn batch_json(batch: &StoredBatch) -> Value {
    let state = batch.progress.state;
    json!({
        "service_id": batch.service_id.as_str(),
        "batch_id": batch.batch_id.to_string(),
        "state": state.to_string(),
        "submitted": state.submitted(),
        "dlt_status": state.dlt_status().map(|status| status.as_str()),
        "attempt": batch.progress.attempts,
        "stored_at": batch.created_at.rfc3339(),
        "since": time(batch.since),
        "submitted_at": time(batch.submitted_at),
        "checked_at": time(batch.checked_at),
        "next_try_at": time(batch.next_try_at),
        "ended_at": time(batch.ended_at),
        "earlier_may_arrive": batch.progress.earlier_may_arrive,
        "last_error": batch.last_error,
        "held": batch.held.as_ref().map(hold_json),
    })
}

fn hold_json(hold: &Hold) -> Value {
    json!({
        "since": hold.since.rfc3339(),
        "reason": hold.reason,
        "until_decision": hold.until_decision,
    })
}

/// Everything that is stored about a batch of a service with this many batches behind it.
pub(in crate::commands) fn details_json(details: &BatchDetails, behind: u64) -> Value {
    let mut document = batch_json(&details.batch);
    let ahead = details.ahead.as_ref();
    document["wait"] = details.wait().map_or(Value::Null, |wait| {
        json!({
            "cause": wait.reason.name(), "since": wait.since.rfc3339(), "text": wait.to_string(),
            "ends": wait.reason.about().ends,
        })
    });
    document["ahead"] = ahead.map_or(0, |ahead| ahead.count).into();
    document["behind"] = behind.into();
    let head = ahead.and_then(|ahead| ahead.head.as_ref());
    document["head"] = head.map_or(Value::Null, batch_json);
    let ids = details.transaction_ids.iter().map(ToString::to_string);
    document["transaction_ids"] = ids.collect::<Vec<_>>().into();
    document["attempts"] = details.failed_attempts.iter().map(attempt_json).collect();
    document["receipts"] = details.receipts.iter().map(receipt_json).collect();
    document["commit_after_invalid"] = details.commit_after_invalid.as_ref().map_or(
        Value::Null,
        |report| json!({ "reported_at": report.reported_at.rfc3339(), "source": report.source }),
    );
    document
}

/// What an operator can do.
pub(in crate::commands) fn action_json(possible: &PossibleAction<'_>) -> Value {
    json!({
        "verb": possible.verb.as_str(),
        "text": possible.verb.description(),
        "batch_id": possible.batch.map(|batch| batch.batch_id.to_string()),
        "service_id": possible.batch.map(|batch| batch.service_id.to_string()),
    })
}

fn attempt_json(attempt: &FailedAttempt) -> Value {
    json!({
        "attempt": attempt.attempt,
        "submitted_at": time(attempt.submitted_at),
        "ended_at": attempt.ended_at.rfc3339(),
        "outcome": attempt.outcome,
        "error": attempt.error,
        "next_try_at": time(attempt.next_try_at),
    })
}

fn receipt_json(receipt: &Receipt) -> Value {
    json!({
        "transaction_id": receipt.transaction_id.map(|id| id.to_string()),
        "error_message": receipt.error_message,
    })
}

fn time(time: Option<Timestamp>) -> Option<String> {
    time.map(Timestamp::rfc3339)
}
