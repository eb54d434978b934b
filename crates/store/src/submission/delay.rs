//! When to try a batch again that the ledger did not accept.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
};

use diesel::QueryableByName;
use grid_batch_core::batches::Deadline;
use grid_batch_core::ledger::SubmissionAnswer;
use grid_batch_core::queue::{DelayOptions, FailedAttempts, HoldCause, NextStep, RetryPolicy};
use grid_batch_core::{Clock, SystemClock};
use grid_batch_support::lock;

use crate::{
    batch::{BatchKey, NOT_PROVED_NEW, REFUSED, key_rows},
    sql::{
        Statement, Store, StoreError, result_row,
        rows::{DELAY_COLUMNS, DelayRow, batch_id, service_id},
    },
};

/// What an operator can do with a batch that is held because it may not be new.
const DECIDE_ABOUT_UNPROVED: &str = "release the batch if it was never committed before, or decide that it is \
    committed or invalid";

/// Core's policy, with numbers that are random.
#[derive(Debug)]
pub(super) struct Retries {
    options: DelayOptions,
    policy: Mutex<RetryPolicy>,
    rng: Mutex<fastrand::Rng>,
}

impl Retries {
    pub(super) fn new(options: DelayOptions) -> Self {
        let rng = Mutex::new(grid_batch_support::rng(options.seed));
        Self { policy: Mutex::new(RetryPolicy::new(options.clone())), options, rng }
    }

    pub(super) fn next_step(
        &self,
        answer: &SubmissionAnswer,
        deadline: Option<Deadline>,
        earlier: FailedAttempts,
    ) -> NextStep {
        let (now, random) = (SystemClock.monotonic(), lock(&self.rng).f64());
        lock(&self.policy).next_step(answer, deadline, earlier, now, random)
    }

    /// Whether the ledger asks for a longer delay than the limit.
    pub(super) fn is_cut(&self, answer: &SubmissionAnswer) -> bool {
        self.options.is_cut(answer)
    }

    /// The ledger's message, with the delay that it asked for, if any.
    pub(super) fn error(&self, answer: &SubmissionAnswer) -> Option<String> {
        let message = answer.message.clone();
        let Some(asked) = answer.retry_after.filter(|_| !answer.outcome.is_parked()) else {
            return message;
        };
        let asked_for = format!("the ledger asked to wait {} s", asked.as_secs());
        let limit = self.options.retry_after_limit.as_secs();
        let wait = if self.is_cut(answer) {
            format!("{asked_for}, which is cut to {limit} s")
        } else {
            asked_for
        };
        Some(message.map_or_else(|| wait.clone(), |message| format!("{message}; {wait}")))
    }
}

/// The reason of a hold, for an operator.
pub(super) fn hold_reason(cause: HoldCause, answer: &SubmissionAnswer) -> String {
    let message = answer.message.as_deref().unwrap_or("it gave no reason");
    match cause {
        HoldCause::Refused { times } => format!(
            "{REFUSED} {times} times: {message}; correct the configuration, then `grid-batch retry BATCH --reason \
             TEXT`, or decide that the batch is invalid"
        ),
        HoldCause::RefusedBatch { times } => format!(
            "{REFUSED} {times} times: {message}; `grid-batch retry BATCH --reason TEXT` when the ledger would accept \
             it, or cancel it or decide that it is invalid"
        ),
        HoldCause::NotProvedNew => format!("{NOT_PROVED_NEW}: {message}; {DECIDE_ABOUT_UNPROVED}"),
    }
}

/// How often these batches were delayed.
pub(super) fn read_delays(
    store: &Store,
    batches: &BTreeSet<BatchKey>,
) -> Result<HashMap<BatchKey, DelayRow>, StoreError> {
    if batches.is_empty() {
        return Ok(HashMap::new());
    }
    let statement = Statement::new(format!(
        "-- read_delays
         select s.service_id, s.batch_id, {DELAY_COLUMNS}
         from {{x}} join lanes s on s.service_id = x.service_id
         where s.batch_id = x.batch_id"
    ))
    .rows(key_rows(batches));
    let rows: Vec<BatchDelayRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter()
        .map(|row| Ok(((service_id(&row.service_id)?, batch_id(&row.batch_id)?), row.delay)))
        .collect()
}

result_row! {
    struct BatchDelayRow {
        service_id: String,
        batch_id: Vec<u8>,
        #[diesel(embed)]
        delay: DelayRow,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::ledger::Outcome;

    use super::*;

    fn answer(outcome: Outcome, asked: Option<Duration>) -> SubmissionAnswer {
        let message = Some("no".to_owned());
        SubmissionAnswer { outcome, status: None, message, retry_after: asked }
    }

    #[test]
    fn error_names_the_delay_that_the_ledger_asked_for() {
        let retries = Retries::new(DelayOptions::default());
        for (seconds, expected) in [
            (7, "no; the ledger asked to wait 7 s"),
            (31_536_000, "no; the ledger asked to wait 31536000 s, which is cut to 300 s"),
        ] {
            let busy = answer(Outcome::Busy, Some(Duration::from_secs(seconds)));
            assert_eq!(retries.error(&busy).unwrap(), expected);
        }
        assert_eq!(retries.error(&answer(Outcome::Busy, None)).unwrap(), "no");
    }

    #[test]
    fn reason_of_a_hold_says_what_to_do() {
        for (cause, beginning) in [
            (HoldCause::Refused { times: 3 }, "refused by the ledger 3 times: no; correct"),
            (
                HoldCause::RefusedBatch { times: 2 },
                "refused by the ledger 2 times: no; `grid-batch",
            ),
            (HoldCause::NotProvedNew, "not proved to be new: no; release the batch"),
        ] {
            let reason = hold_reason(cause, &answer(Outcome::Refused, None));
            assert!(reason.starts_with(beginning), "{reason}");
        }
    }
}
