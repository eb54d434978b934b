//! What happened to a batch, in the order of time.

use std::cmp::Reverse;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{BatchEvent, EventKind};
use grid_batch_core::queries::{BatchDetails, FailedAttempt};

/// What happened to a batch at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    /// When.
    pub(crate) at: Timestamp,
    /// What.
    pub(crate) kind: EventKind,
    /// The state of the batch afterwards, if that is known.
    pub(crate) state: Option<BatchState>,
    /// The attempt that it belongs to, counted from 1.
    pub(crate) attempt: Option<u32>,
    /// What a ledger or an operator said, or what went wrong.
    pub(crate) detail: Option<String>,
    /// The instance that recorded it, if that is known.
    pub(crate) instance: Option<String>,
}

impl From<BatchEvent> for HistoryEntry {
    fn from(event: BatchEvent) -> Self {
        let BatchEvent { at, kind, state, attempt, detail, instance, .. } = event;
        let attempt = Some(attempt).filter(|attempt| *attempt > 0);
        Self { at, kind, state: Some(state), attempt, detail, instance }
    }
}

/// What the rows of a batch tell of its history where no events of it are kept: the time when it was stored, the latest failed attempts, the
/// current attempt, and the present state.
pub(crate) fn stored_history(details: &BatchDetails) -> Vec<HistoryEntry> {
    let BatchDetails { batch, failed_attempts, .. } = details;
    let entry = |at, kind, attempt| HistoryEntry {
        at,
        kind,
        state: None,
        attempt,
        detail: None,
        instance: None,
    };
    let mut entries = vec![entry(batch.created_at, EventKind::Accepted, None)];
    for attempt in failed_attempts {
        let number = Some(attempt.attempt);
        entries.extend(attempt.submitted_at.map(|at| entry(at, EventKind::Submitted, number)));
        let detail = Some(outcome_text(attempt));
        let answered = entry(attempt.ended_at, EventKind::Answered, number);
        entries.push(HistoryEntry { detail, ..answered });
    }
    let number = Some(batch.progress.attempts).filter(|attempts| *attempts > 0);
    let is_current = failed_attempts.last().map(|last| last.attempt) != number;
    if let Some(at) = batch.submitted_at.filter(|_| is_current && number.is_some()) {
        entries.push(entry(at, EventKind::Submitted, number));
    }
    let state = batch.progress.state;
    if let Some(at) =
        batch.since.filter(|_| !matches!(state, BatchState::New | BatchState::Submitting))
    {
        let detail = details.receipts.first().map(|receipt| receipt.error_message.clone());
        let state = Some(state);
        entries.push(HistoryEntry { state, detail, ..entry(at, EventKind::Status, number) });
    }
    if let Some(report) = &details.commit_after_invalid {
        let detail = Some(report.source.clone());
        let kind = EventKind::CommittedAfterInvalid;
        entries.push(HistoryEntry { detail, ..entry(report.reported_at, kind, None) });
    }
    entries.sort_by_key(|entry| (entry.at, Reverse(entry.kind == EventKind::Accepted)));
    entries
}

fn outcome_text(attempt: &FailedAttempt) -> String {
    match &attempt.error {
        Some(error) => format!("{}: {error}", attempt.outcome),
        None => attempt.outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::{Progress, StoredBatch};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn details(state: BatchState, attempts: u32, failed: Vec<FailedAttempt>) -> BatchDetails {
        let batch = StoredBatch {
            progress: Progress { attempts, state, ..Progress::NEW },
            submitted_at: Some(at(4)),
            since: Some(at(5)),
            ..StoredBatch::new("a::b".parse().unwrap(), ItemId::from_bytes([1; 64]), at(1))
        };
        BatchDetails {
            batch,
            label: None,
            of_withdrawal: false,
            deadline: None,
            ahead: None,
            transaction_ids: Vec::new(),
            failed_attempts: failed,
            receipts: Vec::new(),
            commit_after_invalid: None,
        }
    }

    fn failed() -> FailedAttempt {
        FailedAttempt {
            attempt: 1,
            submitted_at: Some(at(2)),
            ended_at: at(3),
            outcome: "busy".to_owned(),
            error: Some("429".to_owned()),
            next_try_at: None,
        }
    }

    fn told(details: &BatchDetails) -> Vec<(i64, &'static str, Option<u32>)> {
        let entries = stored_history(details);
        let seconds = |entry: &HistoryEntry| entry.at.as_micros() / 1_000_000;
        entries.iter().map(|entry| (seconds(entry), entry.kind.as_str(), entry.attempt)).collect()
    }

    #[test]
    fn history_is_in_the_order_of_time() {
        let committed = details(BatchState::Committed, 2, vec![failed()]);
        let expected = [
            (1, "accepted", None),
            (2, "submitted", Some(1)),
            (3, "answered", Some(1)),
            (4, "submitted", Some(2)),
            (5, "status", Some(2)),
        ];
        assert_eq!(told(&committed), expected);
        assert_eq!(stored_history(&committed)[2].detail.as_deref(), Some("busy: 429"));
    }

    #[test]
    fn failed_attempt_is_told_once() {
        let delayed = details(BatchState::Delayed, 1, vec![failed()]);
        let expected = [
            (1, "accepted", None),
            (2, "submitted", Some(1)),
            (3, "answered", Some(1)),
            (5, "status", Some(1)),
        ];
        assert_eq!(told(&delayed), expected);
    }

    #[test]
    fn new_batch_was_only_stored() {
        assert_eq!(told(&details(BatchState::New, 0, Vec::new())), [(1, "accepted", None)]);
    }
}
