//! When a batch that the ledger did not accept is tried again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use diesel::{QueryableByName, sql_types::Text};
use grid_batch_core::{Outcome, ServiceId, SubmissionAnswer};

use crate::sql::{
    Dialect, Statement, Store, StoreError,
    rows::{DELAY_COLUMNS, DelayRow, service_id, service_rows},
};

/// How long batches wait that the ledger certainly did not accept.
#[derive(Debug, Clone)]
pub struct DelayOptions {
    /// The delay after the first such attempt. Each one in a row after it is twice as long.
    pub first: Duration,
    /// No delay is longer, except one that the ledger asks for.
    pub longest: Duration,
    /// The longest delay that the ledger can ask for.
    pub retry_after_limit: Duration,
    /// A batch is held when the ledger has refused it this often, without another answer in between.
    pub refusals_before_hold: u32,
    /// Makes the random part of the delays repeatable.
    pub seed: Option<u64>,
}

impl Default for DelayOptions {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(250),
            longest: Duration::from_secs(30),
            retry_after_limit: Duration::from_mins(5),
            refusals_before_hold: 40,
            seed: None,
        }
    }
}

impl DelayOptions {
    /// No delay is longer, also if the ledger asks for it, except that of a batch that a gate parked.
    pub fn longest_delay(&self) -> Duration {
        let asked = self.retry_after_limit;
        self.longest.max(self.first).max(asked.saturating_add(asked / RANDOM_SHARE))
    }
}

/// What a delay that the ledger asks for may be longer: this part of it.
const RANDOM_SHARE: u32 = 10;

/// Computes delays. They are partly random, so that services that were delayed together do not all come
/// back at once.
#[derive(Debug)]
pub(super) struct DelayPolicy {
    options: DelayOptions,
    rng: Mutex<fastrand::Rng>,
}

impl DelayPolicy {
    pub(super) fn new(options: DelayOptions) -> Self {
        let rng = Mutex::new(grid_batch_support::rng(options.seed));
        Self { options, rng }
    }

    /// The delay after an attempt with this answer, of a batch that was delayed `earlier` times in a row
    /// before. The gate that parked a batch decides alone when it is tried again.
    pub(super) fn delay(&self, answer: &SubmissionAnswer, earlier: u32) -> Duration {
        match (answer.outcome, answer.retry_after) {
            (Outcome::Parked, Some(retry_after)) => retry_after,
            (_, None) => self.backoff(earlier),
            (_, Some(asked)) => {
                let asked = asked.min(self.options.retry_after_limit);
                self.backoff(earlier).max(asked + self.random_part(asked / RANDOM_SHARE))
            }
        }
    }

    /// Between a half of the whole delay and all of it.
    fn backoff(&self, earlier: u32) -> Duration {
        let DelayOptions { first, longest, .. } = self.options;
        let doubled =
            2_u32.checked_pow(earlier).map_or(longest, |times| first.saturating_mul(times));
        let whole = doubled.min(longest.max(first));
        whole / 2 + self.random_part(whole - whole / 2)
    }

    fn random_part(&self, whole: Duration) -> Duration {
        whole.mul_f64(self.rng.lock().unwrap_or_else(PoisonError::into_inner).f64())
    }

    /// Whether the ledger asks for a longer delay than it gets.
    pub(super) fn is_cut(&self, answer: &SubmissionAnswer) -> bool {
        answer.outcome != Outcome::Parked
            && answer.retry_after.is_some_and(|asked| asked > self.options.retry_after_limit)
    }

    /// Why a batch is held that was refused `earlier` times in a row and is refused once more.
    pub(super) fn hold(&self, answer: &SubmissionAnswer, earlier: u32) -> Option<String> {
        let refusals = earlier.saturating_add(1);
        let held =
            answer.outcome == Outcome::Refused && refusals >= self.options.refusals_before_hold;
        held.then(|| {
            format!(
                "{} {refusals} times: {}; correct the configuration, then `grid-batch retry`, or \
                 decide that the batch is invalid",
                crate::batch::REFUSED,
                answer.message.as_deref().unwrap_or("it gave no reason"),
            )
        })
    }

    /// The ledger's message with the delay that it asked for, if it did.
    pub(super) fn error(&self, answer: &SubmissionAnswer) -> Option<String> {
        let message = answer.message.clone();
        let Some(asked) = answer.retry_after.filter(|_| answer.outcome != Outcome::Parked) else {
            return message;
        };
        let asked_for = format!("the ledger asked to wait {} s", asked.as_secs());
        let limit = self.options.retry_after_limit.as_secs();
        let wait = match self.is_cut(answer) {
            true => format!("{asked_for}, which submit.retry_after_limit cuts to {limit} s"),
            false => asked_for,
        };
        Some(message.map_or_else(|| wait.clone(), |message| format!("{message}; {wait}")))
    }
}

/// How often the batches in the lanes of these services were delayed.
pub(super) fn read_delays(
    store: &Store,
    services: &[ServiceId],
) -> Result<HashMap<ServiceId, DelayRow>, StoreError> {
    if services.is_empty() {
        return Ok(HashMap::new());
    }
    let statement = read_delays_statement(store.dialect(), services);
    let rows: Vec<ServiceDelayRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().map(|row| Ok((service_id(&row.service_id)?, row.delay))).collect()
}

fn read_delays_statement(dialect: Dialect, services: &[ServiceId]) -> Statement<'_> {
    Statement::new(
        dialect,
        format!(
            "-- read_delays
             select s.service_id, {DELAY_COLUMNS}
             from {{x}} join lanes s on s.service_id = x.service_id"
        ),
    )
    .rows(service_rows(services))
}

#[derive(QueryableByName)]
struct ServiceDelayRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(embed)]
    delay: DelayRow,
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn policy() -> DelayPolicy {
        DelayPolicy::new(DelayOptions {
            first: S,
            longest: 30 * S,
            retry_after_limit: 300 * S,
            refusals_before_hold: 3,
            seed: Some(7),
        })
    }

    fn answer(outcome: Outcome, asked: Option<Duration>) -> SubmissionAnswer {
        let message = Some("no".to_owned());
        SubmissionAnswer { outcome, status: None, message, retry_after: asked }
    }

    #[test]
    fn delay_doubles_up_to_the_longest() {
        let busy = answer(Outcome::Busy, None);
        for (earlier, whole) in [(0, 1), (1, 2), (4, 16), (5, 30), (31, 30), (u32::MAX, 30)] {
            let delay = policy().delay(&busy, earlier);
            assert!(whole * S / 2 <= delay && delay <= whole * S, "{earlier}: {delay:?}");
        }
    }

    #[test]
    fn ledger_can_ask_for_longer_up_to_the_limit() {
        let policy = policy();
        for (asked, least) in
            [(60 * S, 60 * S), (31_536_000 * S, 300 * S), (Duration::MAX, 300 * S)]
        {
            let busy = answer(Outcome::Busy, Some(asked));
            let delay = policy.delay(&busy, 0);
            assert!(least <= delay && delay <= least + least / 10, "{delay:?} for {asked:?}");
            assert_eq!(policy.is_cut(&busy), asked > 300 * S);
        }
        let error = policy.error(&answer(Outcome::Busy, Some(31_536_000 * S))).unwrap();
        let expected =
            "no; the ledger asked to wait 31536000 s, which submit.retry_after_limit cuts to 300 s";
        assert_eq!(error, expected);
    }

    #[test]
    fn gate_decides_alone_when_a_parked_batch_is_tried() {
        let parked = answer(Outcome::Parked, Some(3_600 * S));
        assert_eq!(policy().delay(&parked, 9), 3_600 * S);
        assert!(!policy().is_cut(&parked));
    }

    #[test]
    fn only_refusals_hold_a_batch() {
        for (outcome, earlier, held) in [
            (Outcome::Refused, 1, false),
            (Outcome::Refused, 2, true),
            (Outcome::Busy, 1_000, false),
            (Outcome::NotSent, 1_000, false),
            (Outcome::Parked, 1_000, false),
        ] {
            assert_eq!(policy().hold(&answer(outcome, None), earlier).is_some(), held, "{outcome}");
        }
        let reason = policy().hold(&answer(Outcome::Refused, None), 2).unwrap();
        assert!(reason.starts_with("refused by the ledger 3 times: no;"), "{reason}");
    }
}
