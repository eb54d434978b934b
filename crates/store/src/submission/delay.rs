//! When to try a batch again that the ledger did not accept.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
    time::{Duration, Instant},
};

use diesel::QueryableByName;
use grid_batch_core::{Deadline, Outcome, SubmissionAnswer};
use grid_batch_support::{Backoff, lock};

use crate::{
    batch::{BatchKey, NOT_PROVED_NEW, key_rows},
    sql::{
        Dialect, Statement, Store, StoreError, result_row,
        rows::{DELAY_COLUMNS, DelayRow, batch_id, service_id},
    },
};

/// Delays for batches that the ledger certainly did not accept.
#[derive(Debug, Clone)]
pub struct DelayOptions {
    /// The delay after the first such attempt. Each further one in a row is twice as long.
    pub first: Duration,
    /// The limit on delays, except one that the ledger asks for.
    pub longest: Duration,
    /// The longest delay that the ledger can ask for.
    pub retry_after_limit: Duration,
    /// A batch is held when the ledger has refused it this many times without another answer in between.
    pub refusals_before_hold: u32,
    /// A batch without a deadline that gets *batch refused* is held at the last try within this time.
    pub hold_after: Duration,
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
            hold_after: Duration::from_mins(2),
            seed: None,
        }
    }
}

impl DelayOptions {
    /// The limit on all delays, including one that the ledger asks for, except that of a batch that a gate has parked.
    pub fn longest_delay(&self) -> Duration {
        let asked = self.retry_after_limit;
        self.longest.max(self.first).max(asked.saturating_add(asked / RANDOM_SHARE))
    }

    fn backoff(&self, longest: Duration) -> Backoff {
        Backoff { first: self.first, longest: longest.max(self.first) }
    }
}

/// Counts tries to send batches to nodes that do not answer. Each try writes to the database, so only some are repeated
/// soon.
#[derive(Debug, Default)]
struct AwayTries {
    second: Option<Instant>,
    /// How many tries of this second are repeated soon.
    soon: u32,
}

impl AwayTries {
    const SOON: Duration = Duration::from_secs(2);
    const MOST_A_SECOND: u32 = 100;

    /// Counts a try. Returns the longest delay after it.
    fn longest_delay(&mut self, now: Instant, longest: Duration) -> Duration {
        if self.second.is_none_or(|start| now.duration_since(start) >= Duration::from_secs(1)) {
            *self = Self { second: Some(now), soon: 0 };
        }
        if self.soon >= Self::MOST_A_SECOND {
            return longest;
        }
        self.soon += 1;
        longest.min(Self::SOON)
    }
}

/// A delay that the ledger asks for is extended by a random time of up to one in this many parts of it.
const RANDOM_SHARE: u32 = 10;
/// What an operator can do about a batch that is held because it may not be new.
const DECIDE_ABOUT_UNPROVED: &str = "release the batch if it was never committed before, or decide that it is \
    committed or invalid";
/// However short the time until a hold is, a single refusal never holds a batch.
const LEAST_REFUSALS: u32 = 2;

/// Computes delays. They are partly random, so that services that were delayed together are not all tried again at
/// once.
#[derive(Debug)]
pub(super) struct DelayPolicy {
    options: DelayOptions,
    rng: Mutex<fastrand::Rng>,
    away: Mutex<AwayTries>,
}

impl DelayPolicy {
    pub(super) fn new(options: DelayOptions) -> Self {
        let rng = Mutex::new(grid_batch_support::rng(options.seed));
        Self { options, rng, away: Mutex::default() }
    }

    /// The delay after an attempt with this answer, for a batch that was delayed `earlier` times in a row before. If a
    /// gate has parked the batch, only the gate decides when it is tried again.
    pub(super) fn delay(&self, answer: &SubmissionAnswer, earlier: u32) -> Duration {
        match (answer.outcome, answer.retry_after) {
            (Outcome::Parked | Outcome::PoolParked, Some(retry_after)) => retry_after,
            // No node has answered. When one answers again, the batch is tried soon.
            (Outcome::NotSent, None) => self.delay_up_to(self.longest_while_away(), earlier),
            (Outcome::Busy, Some(asked)) if answer.status.is_none() && asked <= AwayTries::SOON => {
                self.delay_up_to(self.longest_while_away(), earlier).max(asked)
            }
            (_, None) => self.delay_up_to(self.options.longest, earlier),
            (_, Some(asked)) => {
                let asked = asked.min(self.options.retry_after_limit);
                let asked = asked + (asked / RANDOM_SHARE).mul_f64(lock(&self.rng).f64());
                self.delay_up_to(self.options.longest, earlier).max(asked)
            }
        }
    }

    fn delay_up_to(&self, longest: Duration, earlier: u32) -> Duration {
        self.options.backoff(longest).delay(earlier, &mut lock(&self.rng))
    }

    /// The longest delay of a batch whose node does not answer.
    fn longest_while_away(&self) -> Duration {
        lock(&self.away).longest_delay(Instant::now(), self.options.longest)
    }

    /// Whether the ledger asks for a longer delay than the limit.
    pub(super) fn is_cut(&self, answer: &SubmissionAnswer) -> bool {
        !answer.outcome.is_parked()
            && answer.retry_after.is_some_and(|asked| asked > self.options.retry_after_limit)
    }

    /// Why a batch is held that was refused `earlier` times in a row and is refused once more. A batch with a deadline
    /// is tried for longer, so that its deadline can end it without an operator. It is held eventually, because its
    /// ledger may not report its position, or the deadline may be far away.
    pub(super) fn hold(
        &self,
        answer: &SubmissionAnswer,
        deadline: Option<Deadline>,
        earlier: u32,
    ) -> Option<String> {
        let message = || answer.message.as_deref().unwrap_or("it gave no reason");
        let refusals = earlier.saturating_add(1);
        let (limit, what_to_do) = match answer.outcome {
            Outcome::Refused => (
                self.options.refusals_before_hold,
                "correct the configuration, then `grid-batch retry`, or decide that the batch is invalid",
            ),
            Outcome::RefusedBatch => (
                match deadline {
                    Some(_) => self.options.refusals_before_hold,
                    None => self.batch_refusals_before_hold(),
                },
                "`grid-batch retry` when the ledger would accept it, or cancel it or decide that it is \
                 invalid",
            ),
            Outcome::NotProvedNew => {
                return Some(format!("{NOT_PROVED_NEW}: {}; {DECIDE_ABOUT_UNPROVED}", message()));
            }
            _ => return None,
        };
        (refusals >= limit).then(|| {
            format!("{} {refusals} times: {}; {what_to_do}", crate::batch::REFUSED, message(),)
        })
    }

    /// How many *batch refused* outcomes fit into the time until the batch is held. They are counted instead of
    /// measuring time, because an outage between two of them is not a refusal.
    fn batch_refusals_before_hold(&self) -> u32 {
        let DelayOptions { refusals_before_hold, hold_after, longest, .. } = self.options;
        let backoff = self.options.backoff(longest);
        let mut left = hold_after;
        let delays = (0..refusals_before_hold).take_while(|earlier| {
            let next = left.checked_sub(backoff.whole_delay(*earlier));
            left = next.unwrap_or_default();
            next.is_some()
        });
        let refusals = u32::try_from(delays.count()).unwrap_or(u32::MAX).saturating_add(1);
        refusals.clamp(LEAST_REFUSALS.min(refusals_before_hold), refusals_before_hold)
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

/// How often these batches were delayed.
pub(super) fn read_delays(
    store: &Store,
    batches: &BTreeSet<BatchKey>,
) -> Result<HashMap<BatchKey, DelayRow>, StoreError> {
    if batches.is_empty() {
        return Ok(HashMap::new());
    }
    let statement = read_delays_statement(store.dialect(), batches);
    let rows: Vec<BatchDelayRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter()
        .map(|row| Ok(((service_id(&row.service_id)?, batch_id(&row.batch_id)?), row.delay)))
        .collect()
}

fn read_delays_statement(dialect: Dialect, batches: &BTreeSet<BatchKey>) -> Statement<'_> {
    Statement::new(
        dialect,
        format!(
            "-- read_delays
             select s.service_id, s.batch_id, {DELAY_COLUMNS}
             from {{x}} join lanes s on s.service_id = x.service_id
             where s.batch_id = x.batch_id"
        ),
    )
    .rows(key_rows(batches))
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
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn policy() -> DelayPolicy {
        DelayPolicy::new(DelayOptions {
            first: S,
            longest: 30 * S,
            retry_after_limit: 300 * S,
            refusals_before_hold: 3,
            hold_after: 120 * S,
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
        let expected = "no; the ledger asked to wait 31536000 s, which is cut to 300 s";
        assert_eq!(error, expected);
    }

    #[test]
    fn batch_whose_node_does_not_answer_is_tried_soon() {
        let policy = policy();
        let not_sent = answer(Outcome::NotSent, None);
        assert!(policy.delay(&not_sent, 30) <= AwayTries::SOON);
        assert!(policy.delay(&answer(Outcome::Busy, None), 30) > AwayTries::SOON);
    }

    #[test]
    fn few_of_many_unanswered_tries_are_repeated_soon() {
        let start = Instant::now();
        let mut away = AwayTries::default();
        for second in 0..3 {
            let now = start + Duration::from_secs(second);
            let delays = (0..300).map(|_| away.longest_delay(now, Duration::from_mins(1)));
            let soon = delays.filter(|delay| *delay == AwayTries::SOON).count();
            assert_eq!(soon, 100);
        }
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
            (Outcome::RefusedBatch, 1, false),
            (Outcome::RefusedBatch, 2, true),
            (Outcome::Busy, 1_000, false),
            (Outcome::NotSent, 1_000, false),
            (Outcome::Parked, 1_000, false),
        ] {
            assert_eq!(
                policy().hold(&answer(outcome, None), None, earlier).is_some(),
                held,
                "{outcome}"
            );
        }
        let reason = policy().hold(&answer(Outcome::Refused, None), None, 2).unwrap();
        assert!(reason.starts_with("refused by the ledger 3 times: no;"), "{reason}");
    }

    #[test]
    fn batch_that_is_not_proved_to_be_new_is_held_at_once() {
        let reason = policy().hold(&answer(Outcome::NotProvedNew, None), None, 0).unwrap();
        assert!(reason.starts_with("not proved to be new: no; release the batch"), "{reason}");
    }

    #[test]
    fn refused_batch_is_held_within_the_time_for_it() {
        for (seconds, refusals) in [(0, 2), (1, 2), (2, 2), (3, 3), (31, 6), (90, 7), (9_999, 40)] {
            let hold_after = Duration::from_secs(seconds);
            let options = DelayOptions { hold_after, refusals_before_hold: 40, ..policy().options };
            let policy = DelayPolicy::new(options);
            let held = |earlier| policy.hold(&answer(Outcome::RefusedBatch, None), None, earlier);
            assert!(held(refusals - 2).is_none() && held(refusals - 1).is_some(), "{seconds} s");
            let backoff = policy.options.backoff(policy.options.longest);
            let waited: Duration = (0..refusals - 1).map(|it| backoff.whole_delay(it)).sum();
            assert!(waited <= hold_after || refusals == LEAST_REFUSALS, "{seconds} s: {waited:?}");
        }
    }
}
