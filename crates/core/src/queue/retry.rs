use std::time::Duration;

use crate::MonotonicTime;
use crate::batches::Deadline;
use crate::ledger::{Outcome, SubmissionAnswer};
use crate::queue::Backoff;

/// Delays for batches that the ledger certainly did not accept, and when these are held.
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

/// A delay that the ledger asks for is extended by a random time of up to one in this many parts of it.
const RANDOM_SHARE: u32 = 10;
/// However short the time until a hold is, a single refusal never holds a batch.
const LEAST_REFUSALS: u32 = 2;

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

    /// Whether the ledger asks for a longer delay than the limit.
    pub fn is_cut(&self, answer: &SubmissionAnswer) -> bool {
        !answer.outcome.is_parked()
            && answer.retry_after.is_some_and(|asked| asked > self.retry_after_limit)
    }

    fn backoff(&self, longest: Duration) -> Backoff {
        Backoff { first: self.first, longest: longest.max(self.first) }
    }

    /// Why a batch is held that was refused `earlier` times in a row before this outcome. A batch with a deadline is tried
    /// for longer, so that its deadline can end it without an operator. It is held eventually, because its ledger may
    /// not report its position, or the deadline may be far away.
    fn hold(
        &self,
        outcome: Outcome,
        deadline: Option<Deadline>,
        earlier: u32,
    ) -> Option<HoldCause> {
        let times = earlier.saturating_add(1);
        match outcome {
            Outcome::Refused if times >= self.refusals_before_hold => {
                Some(HoldCause::Refused { times })
            }
            Outcome::RefusedBatch if times >= self.batch_refusals_before_hold(deadline) => {
                Some(HoldCause::RefusedBatch { times })
            }
            Outcome::NotProvedNew => Some(HoldCause::NotProvedNew),
            _ => None,
        }
    }

    /// How many *batch refused* outcomes fit into the time until the batch is held. They are counted instead of
    /// measuring time, because an outage between two of them is not a refusal.
    fn batch_refusals_before_hold(&self, deadline: Option<Deadline>) -> u32 {
        let Self { refusals_before_hold, hold_after, longest, .. } = *self;
        if deadline.is_some() {
            return refusals_before_hold;
        }
        let backoff = self.backoff(longest);
        let mut left = hold_after;
        let delays = (0..refusals_before_hold).take_while(|earlier| {
            let next = left.checked_sub(backoff.whole_delay(*earlier));
            left = next.unwrap_or_default();
            next.is_some()
        });
        let refusals = u32::try_from(delays.count()).unwrap_or(u32::MAX).saturating_add(1);
        refusals.clamp(LEAST_REFUSALS.min(refusals_before_hold), refusals_before_hold)
    }
}

/// Counts the attempts of a batch in a row that the ledger certainly did not accept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailedAttempts {
    /// All of them since a gate last parked it. Each doubles the next delay.
    pub delays: u32,
    /// How often it was refused since the ledger was last busy.
    pub refusals: u32,
}

impl FailedAttempts {
    /// The counts with one more attempt, which had this outcome. A closed gate is not a failure; it and outcomes after
    /// which the batch is not sent again begin a new series.
    #[must_use]
    pub fn with(self, outcome: Outcome) -> Self {
        let delays = self.delays.saturating_add(1);
        match outcome {
            Outcome::Busy => Self { delays, refusals: 0 },
            Outcome::NotSent | Outcome::NotProvedNew => Self { delays, ..self },
            Outcome::Refused | Outcome::RefusedBatch => {
                Self { delays, refusals: self.refusals.saturating_add(1) }
            }
            Outcome::Parked
            | Outcome::PoolParked
            | Outcome::Accepted
            | Outcome::Committed
            | Outcome::Rejected
            | Outcome::Ambiguous => Self::default(),
        }
    }
}

/// What happens to a batch after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// It is not sent again because of this attempt: the ledger has the batch, may have it or has rejected it.
    Report,
    /// It is sent again after this delay.
    Retry(Duration),
    /// It is not sent again before an operator has corrected something or decided.
    Hold(HoldCause),
}

/// Why a batch is held after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldCause {
    /// The ledger has refused the caller or the address this many times in a row.
    Refused {
        /// The number of refusals.
        times: u32,
    },
    /// The outcome was *batch refused* this many times in a row.
    RefusedBatch {
        /// The number of refusals.
        times: u32,
    },
    /// Nothing proves that the ledger has not applied it before.
    NotProvedNew,
}

/// Decides when batches that the ledger certainly did not accept are sent again.
///
/// Its delays are partly random, so that services that were delayed together are not all tried again at once.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_core::MonotonicTime;
/// use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
/// use grid_batch_core::queue::{DelayOptions, FailedAttempts, NextStep, RetryPolicy};
///
/// let mut policy = RetryPolicy::new(DelayOptions::default());
/// let answer = SubmissionAnswer::without_response(Outcome::Busy, "503 Service Unavailable");
/// let mut next = |earlier| {
///     policy.next_step(&answer, None, earlier, MonotonicTime::default(), 0.0)
/// };
/// let first = FailedAttempts::default();
/// assert_eq!(next(first), NextStep::Retry(Duration::from_millis(125)));
/// let second = first.with(Outcome::Busy);
/// assert_eq!(next(second), NextStep::Retry(Duration::from_millis(250)));
/// ```
#[derive(Debug)]
pub struct RetryPolicy {
    options: DelayOptions,
    unanswered: UnansweredTries,
}

impl RetryPolicy {
    /// A policy with these options.
    pub fn new(options: DelayOptions) -> Self {
        Self { options, unanswered: UnansweredTries::default() }
    }

    /// The next step of a batch with this deadline after an attempt with this answer, if the attempts counted in
    /// `earlier` had failed before it. `random` is at least 0 and less than 1.
    pub fn next_step(
        &mut self,
        answer: &SubmissionAnswer,
        deadline: Option<Deadline>,
        earlier: FailedAttempts,
        now: MonotonicTime,
        random: f64,
    ) -> NextStep {
        if !answer.outcome.class().may_be_sent_again() {
            return NextStep::Report;
        }
        match self.options.hold(answer.outcome, deadline, earlier.refusals) {
            Some(cause) => NextStep::Hold(cause),
            None => NextStep::Retry(self.delay(answer, earlier.delays, now, random)),
        }
    }

    /// The delay after an attempt. If a gate has parked the batch, only the gate decides when it is tried again.
    fn delay(
        &mut self,
        answer: &SubmissionAnswer,
        earlier: u32,
        now: MonotonicTime,
        random: f64,
    ) -> Duration {
        let Self { options, unanswered } = self;
        let delay_up_to = |longest| options.backoff(longest).delay(earlier, random);
        match (answer.outcome, answer.retry_after) {
            (Outcome::Parked | Outcome::PoolParked, Some(retry_after)) => retry_after,
            // No node has answered. When one answers again, the batch is tried soon.
            (Outcome::NotSent, None) => delay_up_to(unanswered.longest_delay(now, options.longest)),
            (Outcome::Busy, Some(asked))
                if answer.status.is_none() && asked <= UnansweredTries::SOON =>
            {
                delay_up_to(unanswered.longest_delay(now, options.longest)).max(asked)
            }
            (_, None) => delay_up_to(options.longest),
            (_, Some(asked)) => {
                let asked = asked.min(options.retry_after_limit);
                let asked = asked + (asked / RANDOM_SHARE).mul_f64(random);
                delay_up_to(options.longest).max(asked)
            }
        }
    }
}

/// Counts tries to send batches to nodes that do not answer. Each try writes to the store, so only some are repeated
/// soon.
#[derive(Debug, Default)]
struct UnansweredTries {
    second: Option<MonotonicTime>,
    /// How many tries of this second are repeated soon.
    soon: u32,
}

impl UnansweredTries {
    const SOON: Duration = Duration::from_secs(2);
    const MOST_A_SECOND: u32 = 100;

    /// Counts a try. Returns the longest delay after it.
    fn longest_delay(&mut self, now: MonotonicTime, longest: Duration) -> Duration {
        if self.second.is_none_or(|start| now.since(start) >= Duration::from_secs(1)) {
            *self = Self { second: Some(now), soon: 0 };
        }
        if self.soon >= Self::MOST_A_SECOND {
            return longest;
        }
        self.soon += 1;
        longest.min(Self::SOON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::OutcomeClass;

    const S: Duration = Duration::from_secs(1);
    const OPTIONS: DelayOptions = DelayOptions {
        first: S,
        longest: Duration::from_secs(30),
        retry_after_limit: Duration::from_secs(300),
        refusals_before_hold: 3,
        hold_after: Duration::from_secs(120),
        seed: None,
    };

    fn answer(outcome: Outcome, asked: Option<Duration>) -> SubmissionAnswer {
        let answer = SubmissionAnswer::without_response(outcome, "no");
        SubmissionAnswer { retry_after: asked, ..answer }
    }

    /// The delay after `earlier` that failed, with the least and the most jitter.
    fn delays(answer: &SubmissionAnswer, delays: u32) -> [Duration; 2] {
        let earlier = FailedAttempts { delays, refusals: 0 };
        [0.0, 0.999_999].map(|random| {
            match RetryPolicy::new(OPTIONS).next_step(
                answer,
                None,
                earlier,
                MonotonicTime::default(),
                random,
            ) {
                NextStep::Retry(delay) => delay,
                other => panic!("{other:?}"),
            }
        })
    }

    fn hold(options: &DelayOptions, outcome: Outcome, refusals: u32) -> Option<HoldCause> {
        let earlier = FailedAttempts { delays: refusals, refusals };
        let mut policy = RetryPolicy::new(options.clone());
        match policy.next_step(&answer(outcome, None), None, earlier, MonotonicTime::default(), 0.5)
        {
            NextStep::Hold(cause) => Some(cause),
            NextStep::Retry(_) => None,
            NextStep::Report => panic!("{outcome} is not sent again"),
        }
    }

    #[test]
    fn only_what_was_certainly_not_accepted_is_sent_again() {
        for outcome in Outcome::ALL {
            let step = RetryPolicy::new(OPTIONS).next_step(
                &answer(outcome, None),
                None,
                FailedAttempts::default(),
                MonotonicTime::default(),
                0.5,
            );
            let expected = match outcome.class() {
                OutcomeClass::Accepted | OutcomeClass::Rejected | OutcomeClass::Ambiguous => {
                    NextStep::Report
                }
                _ if outcome == Outcome::NotProvedNew => NextStep::Hold(HoldCause::NotProvedNew),
                OutcomeClass::NotSent | OutcomeClass::Refused => NextStep::Retry(S * 3 / 4),
            };
            assert_eq!(step, expected, "{outcome}");
        }
    }

    #[test]
    fn delay_doubles_up_to_the_longest() {
        let busy = answer(Outcome::Busy, None);
        for (earlier, whole) in [(0, 1), (1, 2), (4, 16), (5, 30), (31, 30), (u32::MAX, 30)] {
            let [least, most] = delays(&busy, earlier);
            assert_eq!(least, whole * S / 2, "{earlier}");
            assert!(most > whole * S * 9 / 10 && most <= whole * S, "{earlier}: {most:?}");
        }
    }

    #[test]
    fn ledger_can_ask_for_longer_up_to_the_limit() {
        for (asked, least) in
            [(60 * S, 60 * S), (31_536_000 * S, 300 * S), (Duration::MAX, 300 * S)]
        {
            let busy = answer(Outcome::Busy, Some(asked));
            let [shortest, longest] = delays(&busy, 0);
            assert_eq!(shortest, least);
            assert!(longest > least && longest <= least + least / 10, "{longest:?} for {asked:?}");
            assert_eq!(OPTIONS.is_cut(&busy), asked > 300 * S);
        }
    }

    #[test]
    fn batch_whose_node_does_not_answer_is_tried_soon() {
        let [_, most] = delays(&answer(Outcome::NotSent, None), 30);
        assert!(most <= UnansweredTries::SOON);
        let [least, _] = delays(&answer(Outcome::Busy, None), 30);
        assert!(least > UnansweredTries::SOON);
    }

    #[test]
    fn few_of_many_unanswered_tries_are_repeated_soon() {
        let mut unanswered = UnansweredTries::default();
        for second in 0..3 {
            let now = MonotonicTime::default().plus(Duration::from_secs(second));
            let delays = (0..300).map(|_| unanswered.longest_delay(now, Duration::from_mins(1)));
            let soon = delays.filter(|delay| *delay == UnansweredTries::SOON).count();
            assert_eq!(soon, 100);
        }
    }

    #[test]
    fn gate_decides_alone_when_a_parked_batch_is_tried() {
        let parked = answer(Outcome::Parked, Some(3_600 * S));
        assert_eq!(delays(&parked, 9), [3_600 * S; 2]);
        assert!(!OPTIONS.is_cut(&parked));
    }

    #[test]
    fn only_refusals_hold_a_batch() {
        for (outcome, earlier, held) in [
            (Outcome::Refused, 1, None),
            (Outcome::Refused, 2, Some(HoldCause::Refused { times: 3 })),
            (Outcome::RefusedBatch, 1, None),
            (Outcome::RefusedBatch, 2, Some(HoldCause::RefusedBatch { times: 3 })),
            (Outcome::NotProvedNew, 0, Some(HoldCause::NotProvedNew)),
            (Outcome::Busy, 1_000, None),
            (Outcome::NotSent, 1_000, None),
            (Outcome::Parked, 1_000, None),
        ] {
            assert_eq!(hold(&OPTIONS, outcome, earlier), held, "{outcome}");
        }
    }

    #[test]
    fn refused_batch_is_held_within_the_time_for_it() {
        for (seconds, refusals) in [(0, 2), (1, 2), (2, 2), (3, 3), (31, 6), (90, 7), (9_999, 40)] {
            let hold_after = Duration::from_secs(seconds);
            let options = DelayOptions { hold_after, refusals_before_hold: 40, ..OPTIONS };
            let held = |earlier| hold(&options, Outcome::RefusedBatch, earlier).is_some();
            assert!(!held(refusals - 2) && held(refusals - 1), "{seconds} s");
            let backoff = options.backoff(options.longest);
            let waited: Duration = (0..refusals - 1).map(|it| backoff.whole_delay(it)).sum();
            assert!(waited <= hold_after || refusals == LEAST_REFUSALS, "{seconds} s: {waited:?}");
        }
    }

    #[test]
    fn batch_with_a_deadline_is_tried_longer() {
        let options = DelayOptions { refusals_before_hold: 40, ..OPTIONS };
        assert_eq!(options.batch_refusals_before_hold(Some(Deadline::Height(7))), 40);
        assert!(options.batch_refusals_before_hold(None) < 40);
    }

    #[test]
    fn busy_ledger_ends_a_series_of_refusals() {
        use Outcome::{Busy, NotSent, Parked, Refused};
        for (outcomes, expected) in [
            (&[Refused, NotSent, Refused][..], (3, 2)),
            (&[Refused, Busy], (2, 0)),
            (&[Refused, Busy, Parked], (0, 0)),
        ] {
            let failed = outcomes.iter().fold(FailedAttempts::default(), |it, &next| it.with(next));
            assert_eq!((failed.delays, failed.refusals), expected, "{outcomes:?}");
        }
    }
}
