use std::{collections::HashMap, time::Duration};

use grid_batch_core::polling::PollPace;

use crate::decision_times::DecisionTime;

/// How long batches take from their acceptance to their commit, as this process has seen it: for each service, and for
/// the whole ledger, whose time is used for services without one. Also when the ledger decides whether a batch is
/// valid.
#[derive(Debug, Default)]
pub struct CommitTimes {
    ledger: Option<UsualTime>,
    /// The shortest of the last times, of any service.
    shortest: Option<Duration>,
    pub(crate) services: HashMap<String, ServiceTimes>,
}

/// The times of a service.
#[derive(Debug, Default)]
pub(crate) struct ServiceTimes {
    commit: Option<UsualTime>,
    /// Only for a service that had an invalid batch lately.
    pub(crate) decision: Option<DecisionTime>,
}

/// The shortest and the longest time between two polls of a new batch.
#[derive(Debug, Clone, Copy)]
pub struct Intervals {
    /// The shortest. If it is longer than `longest`, `longest` is used.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
}

/// What the polls of a batch show about the time of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenCommit {
    /// The time from its acceptance to the last poll that found it under way.
    pub pending_until: Option<Duration>,
    /// The time from its acceptance to the poll that found it committed.
    pub committed_by: Duration,
    /// Why that poll was made.
    pub cause: PollCause,
}

/// When to poll a batch, measured from its acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollTimes {
    /// When it is usually committed, so that the first poll is likely to find it committed.
    pub first: Duration,
    /// The shortest time between two polls after that.
    pub interval: Duration,
}

/// Why a service is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollCause {
    /// It was due in the schedule.
    Schedule,
    /// A trigger, such as an event, which comes right after the commit.
    Trigger,
}

#[derive(Debug, Clone, Copy)]
struct UsualTime {
    average: Duration,
    /// The average deviation from the average.
    deviation: Duration,
    /// The cause of the poll that found the last commit.
    cause: PollCause,
}

impl CommitTimes {
    /// Limit on the number of services that are remembered.
    const MAX_SERVICES: usize = 10_000;
    /// The time that is expected while nothing is known.
    const EXPECTED_AT_FIRST: Duration = Duration::from_secs(1);
    /// The shortest time that is expected. New times are capped at a multiple of the expected one, so it must not
    /// become zero.
    const SHORTEST_EXPECTED: Duration = Duration::from_millis(10);
    /// A time counts as at most this many times the expected one.
    const MAX_GROWTH: u32 = 4;
    /// The shortest time grows by this part of it with each commit that takes longer.
    const TIMES_OF_SHORTEST: u32 = 64;
    /// A time counts as at most this.
    const LONGEST: Duration = Duration::from_hours(1);

    /// Records that a batch of the service was committed.
    pub fn committed(&mut self, service_id: &str, seen: SeenCommit) {
        let expected = self.of_service(service_id).map(|usual| usual.poll_times().first);
        let expected = expected.map(|time| time.max(Self::SHORTEST_EXPECTED));
        // A time that is much longer than usual may be due to an outage. If the ledger has become slower, the next
        // times show it.
        let most = expected.unwrap_or(Self::EXPECTED_AT_FIRST).saturating_mul(Self::MAX_GROWTH);
        let time = seen.estimate(expected).min(most).min(Self::LONGEST);
        self.ledger = Some(UsualTime::with(self.ledger, time, seen.cause));
        let known = self.shortest.map_or(time, |known| known + known / Self::TIMES_OF_SHORTEST);
        self.shortest = Some(known.min(time));
        let known = self.service(service_id);
        known.commit = Some(UsualTime::with(known.commit, time, seen.cause));
    }

    /// When to poll a batch of the service. While nothing is known, it is polled at the shortest interval.
    pub fn poll_times(&self, service_id: &str, intervals: Intervals) -> PollTimes {
        let Intervals { shortest, longest } = intervals;
        let shortest = shortest.min(longest);
        let Some(usual) = self.of_service(service_id) else {
            return PollTimes { first: shortest, interval: shortest };
        };
        let most = longest.saturating_mul(PollPace::PART);
        let PollTimes { first, interval } = usual.at_most(most).poll_times();
        PollTimes { first: first.max(shortest), interval: interval.max(shortest).min(longest) }
    }

    /// How long batches of the service usually take. If none of them was committed yet, how long batches of the ledger
    /// take; `None` before the first commit.
    pub fn usual(&self, service_id: &str) -> Option<Duration> {
        self.of_service(service_id).map(|usual| usual.average)
    }

    /// How long batches of any service usually take; `None` before the first commit.
    pub fn usual_of_ledger(&self) -> Option<Duration> {
        self.ledger.map(|usual| usual.average)
    }

    /// The shortest time that batches of any service took lately; `None` before the first commit. A busy server makes
    /// the usual time longer, but not this one.
    pub fn shortest_of_ledger(&self) -> Option<Duration> {
        self.shortest
    }

    fn of_service(&self, service_id: &str) -> Option<UsualTime> {
        self.services.get(service_id).and_then(|known| known.commit).or(self.ledger)
    }

    /// The times of a service, which is added if it is new. If too many services are known, all are forgotten.
    pub(crate) fn service(&mut self, service_id: &str) -> &mut ServiceTimes {
        if self.services.len() >= Self::MAX_SERVICES && !self.services.contains_key(service_id) {
            self.services.clear();
        }
        self.services.entry(service_id.to_owned()).or_default()
    }
}

impl SeenCommit {
    /// When the batch was committed, given the time that was expected.
    fn estimate(self, expected: Option<Duration>) -> Duration {
        let Self { pending_until, committed_by, cause } = self;
        match pending_until {
            _ if cause == PollCause::Trigger => committed_by,
            Some(pending_until) => (pending_until + committed_by) / 2,
            // It may have been committed long before this poll, and the poll may have come late, so the next batch is
            // polled a little earlier.
            None => committed_by.min(expected.unwrap_or(committed_by)) / 16 * 15,
        }
    }
}

impl UsualTime {
    /// A new time counts as one in this many.
    const TIMES_IN_AVERAGE: u32 = 8;
    const TIMES_IN_DEVIATION: u32 = 4;

    fn with(known: Option<Self>, time: Duration, cause: PollCause) -> Self {
        let Some(known) = known else {
            return Self { average: time, deviation: time / Self::TIMES_IN_DEVIATION, cause };
        };
        let distance = known.average.abs_diff(time);
        Self {
            average: average(known.average, time, Self::TIMES_IN_AVERAGE),
            deviation: average(known.deviation, distance, Self::TIMES_IN_DEVIATION),
            cause,
        }
    }

    /// These times, each capped at `most`.
    fn at_most(self, most: Duration) -> Self {
        let early = self.average.saturating_sub(self.deviation);
        let average = self.average.min(most);
        Self { average, deviation: average.saturating_sub(early), ..self }
    }

    fn poll_times(self) -> PollTimes {
        let Self { average, deviation, cause } = self;
        let interval = (deviation / 2).max(average / 8);
        let first = if cause == PollCause::Trigger {
            // An event triggers an earlier poll. This one is for a commit without an event.
            average + (deviation * 2).max(average / 4) + EVENT_MARGIN
        } else if deviation <= average / 8 {
            average
        } else {
            average.saturating_sub(deviation)
        };
        PollTimes { first, interval }
    }
}

/// How much later than usual an event may come before the batch is polled without it, if all commits take equally long.
const EVENT_MARGIN: Duration = Duration::from_millis(20);

fn average(known: Duration, new: Duration, count: u32) -> Duration {
    known.saturating_mul(count - 1).saturating_add(new) / count
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const INTERVALS: Intervals =
        Intervals { shortest: millis(100), longest: Duration::from_secs(1) };
    const SHORT: Intervals = Intervals { shortest: millis(10), ..INTERVALS };

    /// A commit that two polls have shown to happen at this time.
    fn at(time: Duration) -> SeenCommit {
        SeenCommit { pending_until: Some(time), committed_by: time, cause: PollCause::Schedule }
    }

    fn first(times: &CommitTimes, service: &str) -> Duration {
        rounded(times.poll_times(service, INTERVALS).first)
    }

    /// Averages only approach a constant time.
    fn rounded(time: Duration) -> Duration {
        millis(u64::try_from((time + Duration::from_micros(500)).as_millis()).unwrap())
    }

    /// Polls batches that are committed after these times, each poll late by `lateness`. Returns the average number of
    /// polls of a batch, and the average time from its commit until it was noticed.
    fn ask(
        times: &mut CommitTimes,
        lateness: Duration,
        commits: impl Iterator<Item = Duration>,
    ) -> (f64, Duration) {
        let (mut batches, mut polls, mut late) = (0, 0, Duration::ZERO);
        for commit in commits {
            let PollTimes { first, interval } = times.poll_times("a", SHORT);
            let (mut pending_until, mut asked) = (None, first + lateness);
            polls += 1;
            while asked < commit {
                pending_until = Some(asked);
                asked += interval + lateness;
                polls += 1;
            }
            times.committed(
                "a",
                SeenCommit { pending_until, committed_by: asked, cause: PollCause::Schedule },
            );
            late += asked - commit;
            batches += 1;
        }
        (f64::from(polls) / f64::from(batches), late / batches)
    }

    #[test]
    fn steady_ledger_is_asked_once_or_twice_soon_after_a_commit() {
        let mut times = CommitTimes::default();
        ask(&mut times, Duration::ZERO, (0..100).map(|_| millis(400)));
        let (polls, late) = ask(&mut times, Duration::ZERO, (0..1_000).map(|_| millis(400)));
        assert!(polls < 1.6 && late < millis(40), "{polls} polls, {late:?} late");
    }

    #[test]
    fn unsteady_ledger_is_asked_a_few_times_soon_after_a_commit() {
        let mut times = CommitTimes::default();
        let commits = |count| (0..count).map(|number| millis(200 + number * 377 % 1_000));
        ask(&mut times, Duration::ZERO, commits(100));
        let (polls, late) = ask(&mut times, Duration::ZERO, commits(1_000));
        assert!(polls < 4.0 && late < millis(150), "{polls} polls, {late:?} late");
    }

    #[test]
    fn late_polls_do_not_make_the_next_ones_later() {
        for lateness in [15, 70] {
            let mut times = CommitTimes::default();
            ask(&mut times, millis(lateness), (0..500).map(|_| millis(100)));
            assert!(first(&times, "a") <= millis(100), "{lateness} ms: {:?}", first(&times, "a"));
        }
    }

    #[test]
    fn first_poll_comes_when_a_batch_is_usually_committed() {
        let mut times = CommitTimes::default();
        assert_eq!(first(&times, "a"), millis(100), "nothing is known");
        (0..100).for_each(|_| times.committed("a", at(millis(2_000))));
        assert_eq!(first(&times, "a"), millis(2_000));
        assert_eq!(first(&times, "b"), millis(2_000), "that of the ledger");
        (0..100).for_each(|_| times.committed("b", at(millis(800))));
        assert_eq!(["a", "b"].map(|id| first(&times, id)), [2_000, 800].map(millis));
        assert_eq!(times.poll_times("b", INTERVALS).interval, millis(100));
    }

    #[test]
    fn first_poll_comes_after_the_usual_event_of_a_commit() {
        let mut times = CommitTimes::default();
        let triggered = SeenCommit { cause: PollCause::Trigger, ..at(millis(400)) };
        (0..100).for_each(|_| times.committed("a", triggered));
        assert_eq!(first(&times, "a"), millis(520));
        times.committed("a", at(millis(400)));
        assert_eq!(first(&times, "a"), millis(400), "no event reported the last commit");
    }

    #[test]
    fn intervals_are_bounded() {
        let mut times = CommitTimes::default();
        times.committed("quick", at(millis(1)));
        (0..1_000).for_each(|_| times.committed("slow", at(Duration::MAX / 2)));
        let interval = |service| rounded(times.poll_times(service, INTERVALS).interval);
        assert_eq!(["quick", "slow"].map(interval), [100, 500].map(millis));
        assert_eq!(first(&times, "quick"), millis(100));
        assert!(first(&times, "slow") <= millis(4_000));
        let mut fixed = CommitTimes::default();
        fixed.committed("a", at(millis(800)));
        assert_eq!(
            fixed.poll_times("a", Intervals { longest: millis(2), ..INTERVALS }).interval,
            millis(2),
            "the longest interval counts"
        );
    }

    #[test]
    fn times_follow_a_ledger_that_changes() {
        let mut times = CommitTimes::default();
        let mut learn = |time| {
            (0..60).for_each(|_| times.committed("a", at(millis(time))));
            first(&times, "a").as_millis()
        };
        assert!((1_990..=2_010).contains(&learn(2_000)));
        assert!((800..=810).contains(&learn(800)));
        assert!((1_990..=2_000).contains(&learn(2_000)));
    }

    #[test]
    fn times_that_vary_much_do_not_end_what_is_learned() {
        let mut times = CommitTimes::default();
        for _ in 0..20 {
            (0..3).for_each(|_| times.committed("a", at(millis(800))));
            (0..6).for_each(|_| times.committed("a", at(Duration::ZERO)));
        }
        (0..100).for_each(|_| times.committed("a", at(millis(800))));
        assert!((790..=800).contains(&first(&times, "a").as_millis()), "{times:?}");
    }

    #[test]
    fn slow_ledger_is_not_asked_early_although_its_times_vary() {
        let mut times = CommitTimes::default();
        for _ in 0..100 {
            [40_000, 80_000].into_iter().for_each(|time| times.committed("a", at(millis(time))));
        }
        assert_eq!(first(&times, "a"), millis(4_000), "the latest first poll");
    }

    #[test]
    fn outage_delays_the_next_polls_little() {
        let mut times = CommitTimes::default();
        let committed_by = |time| SeenCommit {
            pending_until: None,
            committed_by: millis(time),
            cause: PollCause::Schedule,
        };
        (0..100).for_each(|_| times.committed("a", at(millis(200))));
        times.committed("a", committed_by(600_000));
        times.committed("new", committed_by(600_000));
        for service in ["a", "new", "other"] {
            let PollTimes { first, interval } = times.poll_times(service, INTERVALS);
            assert!(first.max(interval) <= millis(800), "{service}: {first:?}, {interval:?}");
        }
    }

    #[test]
    fn services_are_bounded() {
        let mut times = CommitTimes::default();
        let services = CommitTimes::MAX_SERVICES + 10;
        (0..services).for_each(|number| times.committed(&number.to_string(), at(millis(800))));
        assert!(times.services.len() <= CommitTimes::MAX_SERVICES);
        assert_eq!(first(&times, "0"), millis(800), "that of the ledger");
    }
}
