//! What is written down beside the state of a batch: attempts that failed, and reasons.

use std::borrow::Cow;

use grid_batch_core::{BatchState, Change, Event, Evidence, Outcome, Timestamp};

use crate::{
    StoreError,
    connection::Connection,
    dialect::Dialect,
    lanes::Lane,
    rows::{attempts, presentable},
    statement::{Rows, Statement},
};

/// The notes of one group of changes.
#[derive(Default)]
pub(crate) struct Notes<'a> {
    attempts: Vec<AttemptNote<'a>>,
    receipts: Vec<ReceiptNote<'a>>,
    by_person: bool,
}

struct AttemptNote<'a> {
    batch_seq: i64,
    attempt: i32,
    submitted_at: Option<i64>,
    ended_at: i64,
    outcome: String,
    error: Option<Cow<'a, str>>,
    next_try_at: Option<i64>,
}

struct ReceiptNote<'a> {
    batch_seq: i64,
    position: i32,
    transaction_id: Option<&'a [u8]>,
    error_message: Cow<'a, str>,
    error_data: &'a [u8],
}

impl<'a> AttemptNote<'a> {
    fn is_of_the_same_attempt(&self, other: &Self) -> bool {
        (self.batch_seq, self.attempt) == (other.batch_seq, other.attempt)
    }

    /// As the statement does with what was written before.
    fn go_on(&mut self, later: AttemptNote<'a>) {
        self.ended_at = later.ended_at;
        self.outcome = format!("{}, then {}", self.outcome, later.outcome);
        self.error = later.error.or(self.error.take());
    }
}

impl<'a> Notes<'a> {
    /// So many failed attempts of one batch are kept, the latest.
    const ATTEMPTS_KEPT: i32 = 100;

    /// The notes of what a person decided.
    pub(crate) fn by_person() -> Self {
        Self { by_person: true, ..Self::default() }
    }

    /// Notes what a change has done to a lane.
    pub(crate) fn take(&mut self, lane: &Lane, change: &'a Change, now: Timestamp) {
        let error = change.error.as_deref().map(presentable);
        if lane.progress.state == BatchState::Invalid {
            self.take_receipts(lane.batch_seq, change, error.clone());
        }
        let outcome = match change.event {
            _ if self.by_person => format!("{}, as a person decided", lane.progress.state),
            Event::Outcome { outcome: Outcome::Accepted, .. } => return,
            Event::Outcome { outcome, .. } => outcome.to_string(),
            Event::OwnerLost { .. } => "owner lost".to_owned(),
            Event::Evidence { evidence: Evidence::Absent, .. } => "absent".to_owned(),
            Event::Evidence { evidence: Evidence::Repeatable, .. } => "to be repeated".to_owned(),
            _ => return,
        };
        let note = AttemptNote {
            batch_seq: lane.batch_seq,
            attempt: attempts(lane.progress.attempts),
            submitted_at: lane.submitted_at,
            ended_at: now.as_micros(),
            outcome,
            error,
            next_try_at: lane.next_try_at,
        };
        match self.attempts.iter_mut().find(|earlier| earlier.is_of_the_same_attempt(&note)) {
            Some(earlier) => earlier.go_on(note),
            None => self.attempts.push(note),
        }
    }

    /// There is always a reason, if only that none was given.
    fn take_receipts(&mut self, batch_seq: i64, change: &'a Change, error: Option<Cow<'a, str>>) {
        if change.receipts.is_empty() {
            let error_message = error.unwrap_or("the ledger gave no reason".into());
            self.receipts.push(ReceiptNote {
                batch_seq,
                position: 0,
                transaction_id: None,
                error_message,
                error_data: &[],
            });
        }
        let receipts = (0..).zip(&change.receipts).map(|(position, receipt)| ReceiptNote {
            batch_seq,
            position,
            transaction_id: receipt.transaction_id.as_ref().map(|id| &id.as_bytes()[..]),
            error_message: presentable(&receipt.error_message),
            error_data: &receipt.error_data,
        });
        self.receipts.extend(receipts);
    }

    pub(crate) fn write(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let dialect = connection.dialect();
        connection.execute(&self.insert_attempts(dialect))?;
        connection.execute(&self.forget_attempts(dialect))?;
        connection.execute(&self.insert_receipts(dialect))?;
        Ok(())
    }

    fn insert_attempts(&self, dialect: Dialect) -> Statement<'_> {
        Statement::new(
            dialect,
            "-- insert_attempts
             insert into submission_attempts
                 (batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at)
             select batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at
             from {x} where true
             on conflict (batch_seq, attempt) do update set
                 ended_at = excluded.ended_at,
                 outcome = submission_attempts.outcome || ', then ' || excluded.outcome,
                 error = coalesce(excluded.error, submission_attempts.error)",
        )
        .rows(
            Rows::default()
                .long("batch_seq", self.attempts.iter().map(|note| note.batch_seq))
                .int("attempt", self.attempts.iter().map(|note| note.attempt))
                .optional_long("submitted_at", self.attempts.iter().map(|note| note.submitted_at))
                .long("ended_at", self.attempts.iter().map(|note| note.ended_at))
                .text("outcome", self.attempts.iter().map(|note| note.outcome.as_str()))
                .optional_text("error", self.attempts.iter().map(|note| note.error.as_deref()))
                .optional_long("next_try_at", self.attempts.iter().map(|note| note.next_try_at)),
        )
    }

    fn forget_attempts(&self, dialect: Dialect) -> Statement<'_> {
        let old = || {
            let too_many = |note: &&AttemptNote<'_>| note.attempt > Self::ATTEMPTS_KEPT;
            self.attempts.iter().filter(too_many)
        };
        Statement::new(
            dialect,
            "-- forget_attempts
             delete from submission_attempts
             where (batch_seq, attempt) in (select x.batch_seq, x.attempt from {x})",
        )
        .rows(
            Rows::default()
                .long("batch_seq", old().map(|note| note.batch_seq))
                .int("attempt", old().map(|note| note.attempt - Self::ATTEMPTS_KEPT)),
        )
    }

    fn insert_receipts(&self, dialect: Dialect) -> Statement<'_> {
        Statement::new(
            dialect,
            "-- insert_receipts
             insert into transaction_receipts
                 (batch_seq, position, transaction_id, error_message, error_data)
             select batch_seq, position, transaction_id, error_message, error_data from {x}",
        )
        .rows(
            Rows::default()
                .long("batch_seq", self.receipts.iter().map(|note| note.batch_seq))
                .int("position", self.receipts.iter().map(|note| note.position))
                .optional_bytes("transaction_id", self.receipts.iter().map(|n| n.transaction_id))
                .text("error_message", self.receipts.iter().map(|note| note.error_message.as_ref()))
                .bytes("error_data", self.receipts.iter().map(|note| note.error_data)),
        )
    }
}
