use std::borrow::Cow;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, Change, Event, Progress};
use grid_batch_core::events::EventKind;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;

use super::lane::{Applied, Lane};
use crate::{
    events::{NewEvent, insert_events},
    sql::{
        Connection, EventSink, Rows, StoreError,
        rows::{attempts, storable},
    },
};

/// The action of an operator on a batch, and its reason.
#[derive(Clone, Copy)]
pub(crate) struct ActionNote<'a> {
    pub(crate) kind: EventKind,
    pub(crate) action: &'a str,
    pub(crate) reason: Option<&'a str>,
}

/// The events, the failed attempts and the receipts of one group of changes.
#[derive(Default)]
pub(crate) struct AttemptLog<'a> {
    attempts: Vec<FailedAttemptRow<'a>>,
    receipts: Vec<ReceiptRow<'a>>,
    events: Vec<NewEvent>,
}

struct FailedAttemptRow<'a> {
    batch_seq: i64,
    attempt: i32,
    submitted_at: Option<i64>,
    ended_at: i64,
    outcome: String,
    error: Option<Cow<'a, str>>,
    next_try_at: Option<i64>,
}

struct ReceiptRow<'a> {
    batch_seq: i64,
    position: i32,
    transaction_id: Option<&'a [u8]>,
    error_message: Cow<'a, str>,
    error_data: &'a [u8],
}

impl<'a> FailedAttemptRow<'a> {
    fn is_same_attempt(&self, other: &Self) -> bool {
        (self.batch_seq, self.attempt) == (other.batch_seq, other.attempt)
    }

    /// Merges a later row of the same attempt, in the same way as `insert_attempts` merges it with a stored one.
    fn merge(&mut self, later: FailedAttemptRow<'a>) {
        self.ended_at = later.ended_at;
        self.outcome = format!("{}, then {}", self.outcome, later.outcome);
        self.error = later.error.or(self.error.take());
    }
}

impl<'a> AttemptLog<'a> {
    /// The number of failed attempts that are kept of one batch. The latest are kept.
    const ATTEMPTS_KEPT: i32 = 100;

    /// Adds the change that was just applied to a lane.
    pub(super) fn add(
        &mut self,
        lane: &Lane,
        change: &'a Change,
        applied: Applied,
        now: Timestamp,
    ) {
        if applied.progressed {
            self.add_event(lane, change.event.into(), event_detail(lane, change));
        }
        if applied.held {
            self.add_event(lane, EventKind::Held, lane.held_reason().map(str::to_owned));
        }
        let error = change.error.as_deref().map(storable);
        if lane.progress.state == BatchState::Invalid {
            let reason = match change.event {
                Event::Evidence {
                    evidence: Evidence::NeverApplicable | Evidence::Expired, ..
                } if error.is_some() => error.clone(),
                // Other evidence ends a batch as invalid only if the ledger reported it as invalid before.
                Event::Evidence { .. } => lane.last_error.clone().map(Cow::Owned),
                _ => error.clone(),
            };
            self.add_receipts(lane.batch_seq, change, reason);
        }
        let outcome = match change.event {
            Event::EarlierCannotArrive { .. } => return,
            Event::Decided { decision, .. } => {
                format!("{decision}, decided by an operator")
            }
            Event::Outcome { outcome: Outcome::Accepted | Outcome::Committed, .. } => return,
            Event::Outcome { outcome, .. } => outcome.to_string(),
            Event::OwnerLost { .. } => "owner lost".to_owned(),
            _ if lane.progress.state != BatchState::Absent => return,
            Event::Evidence { evidence: Evidence::Absent, .. } => "absent".to_owned(),
            Event::Evidence { evidence: Evidence::Lost, .. } => "lost".to_owned(),
            Event::Evidence { evidence: Evidence::Repeatable, .. } => "to be repeated".to_owned(),
            _ => return,
        };
        self.add_row(lane, outcome, error, now);
    }

    pub(crate) fn add_action(&mut self, lane: &Lane, note: ActionNote<'a>, now: Timestamp) {
        let ActionNote { kind, action, reason } = note;
        let detail = match (kind, reason) {
            (EventKind::Decided, Some(reason)) => Some(format!("{action}: {reason}")),
            (EventKind::Decided, None) => Some(action.to_owned()),
            (_, reason) => reason.map(str::to_owned),
        };
        self.add_event(lane, kind, detail);
        self.add_row(lane, format!("{action} by an operator"), reason.map(storable), now);
    }

    fn add_event(&mut self, lane: &Lane, kind: EventKind, detail: Option<String>) {
        let Progress { state, attempts, .. } = lane.progress;
        let batch_seq = lane.batch_seq;
        self.events.push(NewEvent { batch_seq, kind, state, attempt: attempts, detail });
    }

    fn add_row(
        &mut self,
        lane: &Lane,
        outcome: String,
        error: Option<Cow<'a, str>>,
        now: Timestamp,
    ) {
        let row = FailedAttemptRow {
            batch_seq: lane.batch_seq,
            attempt: attempts(lane.progress.attempts),
            submitted_at: lane.submitted_at,
            ended_at: now.as_micros(),
            outcome,
            error,
            next_try_at: lane.next_try_at,
        };
        match self.attempts.iter_mut().find(|earlier| earlier.is_same_attempt(&row)) {
            Some(earlier) => earlier.merge(row),
            None => self.attempts.push(row),
        }
    }

    /// Adds receipts. An invalid batch always gets at least one.
    fn add_receipts(&mut self, batch_seq: i64, change: &'a Change, error: Option<Cow<'a, str>>) {
        if change.receipts.is_empty() {
            let error_message = error.unwrap_or("the ledger gave no reason".into());
            self.receipts.push(ReceiptRow {
                batch_seq,
                position: 0,
                transaction_id: None,
                error_message,
                error_data: &[],
            });
        }
        let receipts = (0..).zip(&change.receipts).map(|(position, receipt)| ReceiptRow {
            batch_seq,
            position,
            transaction_id: receipt.transaction_id.as_ref().map(|id| id.as_bytes()),
            error_message: storable(&receipt.error_message),
            error_data: &receipt.error_data,
        });
        self.receipts.extend(receipts);
    }

    pub(crate) fn write(
        &self,
        connection: &mut Connection,
        sink: &EventSink,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.insert_attempts(connection)?;
        self.remove_old_attempts(connection)?;
        self.insert_receipts(connection)?;
        insert_events(connection, sink, &self.events, now)
    }

    fn insert_attempts(&self, connection: &mut Connection) -> Result<(), StoreError> {
        connection.execute_rows(
            "-- insert_attempts
             insert into submission_attempts
                 (batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at)
             select batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at
             from {x} where true
             on conflict (batch_seq, attempt) do update set
                 ended_at = excluded.ended_at,
                 outcome = submission_attempts.outcome || ', then ' || excluded.outcome,
                 error = coalesce(excluded.error, submission_attempts.error)",
            Rows::default()
                .long("batch_seq", self.attempts.iter().map(|row| row.batch_seq))
                .int("attempt", self.attempts.iter().map(|row| row.attempt))
                .optional_long("submitted_at", self.attempts.iter().map(|row| row.submitted_at))
                .long("ended_at", self.attempts.iter().map(|row| row.ended_at))
                .text("outcome", self.attempts.iter().map(|row| row.outcome.as_str()))
                .optional_text("error", self.attempts.iter().map(|row| row.error.as_deref()))
                .optional_long("next_try_at", self.attempts.iter().map(|row| row.next_try_at)),
        )
    }

    fn remove_old_attempts(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let old = || {
            let too_many = |row: &&FailedAttemptRow<'_>| row.attempt > Self::ATTEMPTS_KEPT;
            self.attempts.iter().filter(too_many)
        };
        connection.execute_rows(
            "-- remove_old_attempts
             delete from submission_attempts
             where (batch_seq, attempt) in (select x.batch_seq, x.attempt from {x})",
            Rows::default()
                .long("batch_seq", old().map(|row| row.batch_seq))
                .int("attempt", old().map(|row| row.attempt - Self::ATTEMPTS_KEPT)),
        )
    }

    fn insert_receipts(&self, connection: &mut Connection) -> Result<(), StoreError> {
        connection.execute_rows(
            "-- insert_receipts
             insert into transaction_receipts
                 (batch_seq, position, transaction_id, error_message, error_data)
             select batch_seq, position, transaction_id, error_message, error_data from {x}",
            Rows::default()
                .long("batch_seq", self.receipts.iter().map(|row| row.batch_seq))
                .int("position", self.receipts.iter().map(|row| row.position))
                .optional_bytes(
                    "transaction_id",
                    self.receipts.iter().map(|row| row.transaction_id),
                )
                .text("error_message", self.receipts.iter().map(|row| row.error_message.as_ref()))
                .bytes("error_data", self.receipts.iter().map(|row| row.error_data)),
        )
    }
}

/// The detail of the event for a change, besides its kind and the state: what went wrong, or who decided what.
fn event_detail(lane: &Lane, change: &Change) -> Option<String> {
    let word = match change.event {
        Event::Outcome { outcome: Outcome::Accepted | Outcome::Committed, .. } => None,
        Event::Outcome { outcome, .. } => Some(outcome.to_string()),
        Event::Evidence { evidence, .. } => Some(evidence_word(evidence).to_owned()),
        Event::Decided { decision, .. } => Some(decision.to_string()),
        _ => None,
    };
    let receipt = change.receipts.iter().map(|receipt| receipt.error_message.as_str());
    let invalid = lane.progress().state == BatchState::Invalid || lane.progress().invalid_reported;
    let receipt = receipt.filter(|_| invalid).find(|message| !message.is_empty());
    match (word, receipt.or(change.error.as_deref())) {
        (Some(word), Some(error)) => Some(format!("{word}: {error}")),
        (word, error) => word.or_else(|| error.map(str::to_owned)),
    }
}

fn evidence_word(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Committed => "committed",
        Evidence::Present => "present",
        Evidence::Absent => "absent",
        Evidence::Repeatable => "to be repeated",
        Evidence::Lost => "lost",
        Evidence::StoppedNode => "a node stopped answering",
        Evidence::NeverApplicable => "never applicable",
        Evidence::Expired => "expired",
        Evidence::Inconclusive => "inconclusive",
    }
}
