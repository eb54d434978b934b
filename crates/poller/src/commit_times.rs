use std::{collections::HashMap, time::Duration};

use grid_batch_core::PollPace;

/// How long batches take from their acceptance to their commit, as this process has seen it: for each
/// service, and for the ledger, which counts for the other services.
#[derive(Debug)]
pub(crate) struct CommitTimes {
    ledger: Option<UsualTime>,
    services: HashMap<String, UsualTime>,
    shortest_interval: Duration,
    longest_interval: Duration,
}

/// What the polls of a batch show about the time of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenCommit {
    /// The time from its acceptance to the last poll that found it under way.
    pub(crate) pending_until: Option<Duration>,
    /// The time from its acceptance to the poll that found it committed.
    pub(crate) committed_by: Duration,
    /// Why that poll was made.
    pub(crate) cause: PollCause,
}

/// When to poll a batch, measured from its acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollTimes {
    /// When it is usually committed, so that the first poll usually finds it committed.
    pub(crate) first: Duration,
    /// The shortest time between two polls after that.
    pub(crate) interval: Duration,
}

/// Why a service is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollCause {
    /// It was due in the schedule.
    Schedule,
    /// A trigger, such as an event, which comes right after the commit.
    Trigger,
}

#[derive(Debug, Clone, Copy)]
struct UsualTime {
    average: Duration,
    /// The average distance of a time from the average.
    deviation: Duration,
    /// The cause of the poll that found the last commit.
    cause: PollCause,
}

impl CommitTimes {
    /// The greatest number of services that are remembered.
    const MAX_SERVICES: usize = 10_000;
    /// The time that is expected while nothing is known.
    const EXPECTED_AT_FIRST: Duration = Duration::from_secs(1);
    /// A time counts as at most this many times the expected one.
    const MAX_GROWTH: u32 = 4;

    /// Learns intervals between these two.
    pub(crate) fn new(shortest_interval: Duration, longest_interval: Duration) -> Self {
        Self { ledger: None, services: HashMap::new(), shortest_interval, longest_interval }
    }

    pub(crate) fn record(&mut self, service_id: &str, seen: SeenCommit) {
        let expected = self.usual(service_id).map(|_| self.poll_times(service_id).first);
        // A time that is much longer than usual may be that of an outage. If the ledger has become slower, the
        // next times show it.
        let longest = self.longest_interval.saturating_mul(PollPace::PART);
        let most = expected
            .unwrap_or(Self::EXPECTED_AT_FIRST)
            .saturating_mul(Self::MAX_GROWTH)
            .min(longest);
        let time = seen.estimate(expected).min(most);
        self.ledger = Some(UsualTime::with(self.ledger, time, seen.cause));
        if let Some(known) = self.services.get_mut(service_id) {
            *known = UsualTime::with(Some(*known), time, seen.cause);
            return;
        }
        if self.services.len() >= Self::MAX_SERVICES {
            self.services.clear();
        }
        self.services.insert(service_id.to_owned(), UsualTime::with(None, time, seen.cause));
    }

    /// When to poll a batch of the service: at the shortest interval while nothing is known.
    pub(crate) fn poll_times(&self, service_id: &str) -> PollTimes {
        let shortest = self.shortest_interval.min(self.longest_interval);
        let Some(usual) = self.usual(service_id) else {
            return PollTimes { first: shortest, interval: shortest };
        };
        let PollTimes { first, interval } = usual.poll_times();
        let interval = interval.max(shortest).min(self.longest_interval);
        PollTimes { first: first.max(shortest), interval }
    }

    fn usual(&self, service_id: &str) -> Option<UsualTime> {
        self.services.get(service_id).copied().or(self.ledger)
    }
}

impl SeenCommit {
    /// When the batch was committed, of which this time was expected.
    fn estimate(self, expected: Option<Duration>) -> Duration {
        let Self { pending_until, committed_by, cause } = self;
        match pending_until {
            _ if cause == PollCause::Trigger => committed_by,
            Some(pending_until) => (pending_until + committed_by) / 2,
            // It may have been committed long before, and the poll may have come late, so the next batch is
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

    fn poll_times(self) -> PollTimes {
        let Self { average, deviation, cause } = self;
        let interval = (deviation / 2).max(average / 8);
        let first = if cause == PollCause::Trigger {
            // An event triggers a poll before. This one is for a commit without an event.
            average + (deviation * 2).max(average / 4) + EVENT_MARGIN
        } else if deviation <= average / 8 {
            average
        } else {
            average.saturating_sub(deviation)
        };
        PollTimes { first, interval }
    }
}

/// How much later than usual an event may come before the batch is polled without it, where all commits take equally
/// long.
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

    fn commit_times() -> CommitTimes {
        CommitTimes::new(millis(100), millis(1_000))
    }

    /// A commit that two polls have shown to be at this time.
    fn at(time: Duration) -> SeenCommit {
        SeenCommit { pending_until: Some(time), committed_by: time, cause: PollCause::Schedule }
    }

    fn first(times: &CommitTimes, service: &str) -> Duration {
        rounded(times.poll_times(service).first)
    }

    /// Averages come close to a time that is always the same.
    fn rounded(time: Duration) -> Duration {
        millis(u64::try_from((time + Duration::from_micros(500)).as_millis()).unwrap())
    }

    /// Polls batches that are committed after these times, and returns how many polls a batch needed,
    /// and how long after its commit it was noticed, both on average. Polls come late by `lateness`.
    fn ask(
        times: &mut CommitTimes,
        lateness: Duration,
        commits: impl Iterator<Item = Duration>,
    ) -> (f64, Duration) {
        let (mut batches, mut polls, mut late) = (0, 0, Duration::ZERO);
        for commit in commits {
            let PollTimes { first, interval } = times.poll_times("a");
            let (mut pending_until, mut asked) = (None, first + lateness);
            polls += 1;
            while asked < commit {
                pending_until = Some(asked);
                asked += interval + lateness;
                polls += 1;
            }
            times.record(
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
        let mut times = CommitTimes::new(millis(10), millis(1_000));
        ask(&mut times, Duration::ZERO, (0..100).map(|_| millis(400)));
        let (polls, late) = ask(&mut times, Duration::ZERO, (0..1_000).map(|_| millis(400)));
        assert!(polls < 1.6 && late < millis(40), "{polls} polls, {late:?} late");
    }

    #[test]
    fn unsteady_ledger_is_asked_a_few_times_soon_after_a_commit() {
        let mut times = CommitTimes::new(millis(10), millis(1_000));
        let commits = |count| (0..count).map(|number| millis(200 + number * 377 % 1_000));
        ask(&mut times, Duration::ZERO, commits(100));
        let (polls, late) = ask(&mut times, Duration::ZERO, commits(1_000));
        assert!(polls < 4.0 && late < millis(150), "{polls} polls, {late:?} late");
    }

    #[test]
    fn late_polls_do_not_make_the_next_ones_later() {
        for lateness in [15, 70] {
            let mut times = CommitTimes::new(millis(10), millis(1_000));
            ask(&mut times, millis(lateness), (0..500).map(|_| millis(100)));
            assert!(first(&times, "a") <= millis(100), "{lateness} ms: {:?}", first(&times, "a"));
        }
    }

    #[test]
    fn first_poll_comes_when_a_batch_is_usually_committed() {
        let mut times = commit_times();
        assert_eq!(first(&times, "a"), millis(100), "nothing is known");
        (0..100).for_each(|_| times.record("a", at(millis(2_000))));
        assert_eq!(first(&times, "a"), millis(2_000));
        assert_eq!(first(&times, "b"), millis(2_000), "that of the ledger");
        (0..100).for_each(|_| times.record("b", at(millis(800))));
        assert_eq!(["a", "b"].map(|id| first(&times, id)), [2_000, 800].map(millis));
        assert_eq!(times.poll_times("b").interval, millis(100));
    }

    #[test]
    fn first_poll_comes_after_the_usual_event_of_a_commit() {
        let mut times = commit_times();
        let triggered = SeenCommit { cause: PollCause::Trigger, ..at(millis(400)) };
        (0..100).for_each(|_| times.record("a", triggered));
        assert_eq!(first(&times, "a"), millis(520));
        times.record("a", at(millis(400)));
        assert_eq!(first(&times, "a"), millis(400), "no event told of the last commit");
    }

    #[test]
    fn intervals_are_bounded() {
        let mut times = commit_times();
        times.record("quick", at(millis(1)));
        (0..100).for_each(|_| times.record("slow", at(Duration::MAX / 2)));
        let interval = |service| rounded(times.poll_times(service).interval);
        assert_eq!(["quick", "slow"].map(interval), [100, 500].map(millis));
        assert_eq!(first(&times, "quick"), millis(100));
        assert!(first(&times, "slow") <= millis(4_000));
        let mut fixed = CommitTimes::new(millis(100), millis(2));
        fixed.record("a", at(millis(800)));
        assert_eq!(fixed.poll_times("a").interval, millis(2), "the longest interval counts");
    }

    #[test]
    fn times_follow_a_ledger_that_changes() {
        let mut times = commit_times();
        let mut learn = |time| {
            (0..60).for_each(|_| times.record("a", at(millis(time))));
            first(&times, "a").as_millis()
        };
        assert!((1_990..=2_010).contains(&learn(2_000)));
        assert!((800..=810).contains(&learn(800)));
        assert!((1_990..=2_000).contains(&learn(2_000)));
    }

    #[test]
    fn outage_delays_the_next_polls_little() {
        let mut times = commit_times();
        let committed_by = |time| SeenCommit {
            pending_until: None,
            committed_by: millis(time),
            cause: PollCause::Schedule,
        };
        (0..100).for_each(|_| times.record("a", at(millis(200))));
        times.record("a", committed_by(600_000));
        times.record("new", committed_by(600_000));
        for service in ["a", "new", "other"] {
            let PollTimes { first, interval } = times.poll_times(service);
            assert!(first.max(interval) <= millis(800), "{service}: {first:?}, {interval:?}");
        }
    }

    #[test]
    fn services_are_bounded() {
        let mut times = commit_times();
        let services = CommitTimes::MAX_SERVICES + 10;
        (0..services).for_each(|number| times.record(&number.to_string(), at(millis(800))));
        assert!(times.services.len() <= CommitTimes::MAX_SERVICES);
        assert_eq!(first(&times, "0"), millis(800), "that of the ledger");
    }
}
