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

/// What questions about a batch told about the time of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenCommit {
    /// The time from its acceptance to the last question whose answer was that it was under way.
    pub(crate) pending_until: Option<Duration>,
    /// The time from its acceptance to the question whose answer was that it was committed.
    pub(crate) committed_by: Duration,
    /// That question was asked because of an event, which comes right after the commit.
    pub(crate) by_event: bool,
}

/// When to ask for a batch, measured from its acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuestionTimes {
    /// When it is usually committed, so that the first question is not in vain.
    pub(crate) first: Duration,
    /// The shortest time between two questions after that.
    pub(crate) interval: Duration,
}

#[derive(Debug, Clone, Copy)]
struct UsualTime {
    average: Duration,
    /// The average distance of a time from the average.
    deviation: Duration,
    /// Events tell of commits.
    by_event: bool,
}

impl CommitTimes {
    /// The greatest number of services that are remembered.
    const MAX_SERVICES: usize = 10_000;

    /// Learns intervals between these two.
    pub(crate) fn new(shortest_interval: Duration, longest_interval: Duration) -> Self {
        Self { ledger: None, services: HashMap::new(), shortest_interval, longest_interval }
    }

    pub(crate) fn record(&mut self, service_id: &str, seen: SeenCommit) {
        let time = seen.estimate();
        // One very long time must not count for many others.
        let time = time.min(self.longest_interval.saturating_mul(PollPace::PART));
        self.ledger = Some(UsualTime::with(self.ledger, time, seen.by_event));
        if let Some(known) = self.services.get_mut(service_id) {
            *known = UsualTime::with(Some(*known), time, seen.by_event);
            return;
        }
        if self.services.len() >= Self::MAX_SERVICES {
            self.services.clear();
        }
        self.services.insert(service_id.to_owned(), UsualTime::with(None, time, seen.by_event));
    }

    /// When to ask for a batch of the service: at the shortest interval while nothing is known.
    pub(crate) fn question_times(&self, service_id: &str) -> QuestionTimes {
        let shortest = self.shortest_interval.min(self.longest_interval);
        let usual = self.services.get(service_id).copied().or(self.ledger);
        let Some(usual) = usual else {
            return QuestionTimes { first: shortest, interval: shortest };
        };
        let QuestionTimes { first, interval } = usual.question_times();
        let interval = interval.max(shortest).min(self.longest_interval);
        QuestionTimes { first: first.max(shortest), interval }
    }
}

impl SeenCommit {
    fn estimate(self) -> Duration {
        let Self { pending_until, committed_by, by_event } = self;
        match pending_until {
            _ if by_event => committed_by,
            Some(pending_until) => (pending_until + committed_by) / 2,
            // It may have been committed long before, so the next one is asked for a little earlier.
            None => committed_by - committed_by / 16,
        }
    }
}

impl UsualTime {
    /// The weights of a new time are one part of these.
    const PARTS: u32 = 8;
    const PARTS_OF_DEVIATION: u32 = 4;

    fn with(known: Option<Self>, time: Duration, by_event: bool) -> Self {
        let Some(known) = known else {
            return Self { average: time, deviation: time / Self::PARTS_OF_DEVIATION, by_event };
        };
        let distance = known.average.abs_diff(time);
        Self {
            average: average(known.average, time, Self::PARTS),
            deviation: average(known.deviation, distance, Self::PARTS_OF_DEVIATION),
            by_event,
        }
    }

    fn question_times(self) -> QuestionTimes {
        let Self { average, deviation, by_event } = self;
        let interval = (deviation / 2).max(average / 8);
        let first = match () {
            // An event leads to a question sooner. This one is for a commit of which none tells.
            () if by_event => average + (deviation * 2).max(average / 4) + EVENT_TOLERANCE,
            () if deviation <= average / 8 => average,
            () => average.saturating_sub(deviation),
        };
        QuestionTimes { first, interval }
    }
}

/// How much later an event may come, where commits are always equally fast, before a question is asked without it.
const EVENT_TOLERANCE: Duration = Duration::from_millis(20);

fn average(known: Duration, new: Duration, parts: u32) -> Duration {
    known.saturating_mul(parts - 1).saturating_add(new) / parts
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

    /// A commit that two questions have shown to be at this time.
    fn at(time: Duration) -> SeenCommit {
        SeenCommit { pending_until: Some(time), committed_by: time, by_event: false }
    }

    fn first(times: &CommitTimes, service: &str) -> Duration {
        times.question_times(service).first
    }

    /// Asks for batches that are committed after these times, and returns how many questions a batch needed,
    /// and how long after its commit it was noticed, both on average.
    fn ask(times: &mut CommitTimes, commits: impl Iterator<Item = Duration>) -> (f64, Duration) {
        let (mut batches, mut questions, mut late) = (0, 0, Duration::ZERO);
        for commit in commits {
            let QuestionTimes { first, interval } = times.question_times("a");
            let (mut pending_until, mut asked) = (None, first);
            questions += 1;
            while asked < commit {
                pending_until = Some(asked);
                asked += interval;
                questions += 1;
            }
            times.record("a", SeenCommit { pending_until, committed_by: asked, by_event: false });
            late += asked - commit;
            batches += 1;
        }
        (f64::from(questions) / f64::from(batches), late / batches)
    }

    #[test]
    fn steady_ledger_is_asked_once_or_twice_soon_after_a_commit() {
        let mut times = CommitTimes::new(millis(10), millis(1_000));
        ask(&mut times, (0..100).map(|_| millis(400)));
        let (questions, late) = ask(&mut times, (0..1_000).map(|_| millis(400)));
        assert!(questions < 1.6 && late < millis(40), "{questions} questions, {late:?} late");
    }

    #[test]
    fn unsteady_ledger_is_asked_a_few_times_soon_after_a_commit() {
        let mut times = CommitTimes::new(millis(10), millis(1_000));
        let commits = |count| (0..count).map(|number| millis(200 + number * 377 % 1_000));
        ask(&mut times, commits(100));
        let (questions, late) = ask(&mut times, commits(1_000));
        assert!(questions < 4.0 && late < millis(150), "{questions} questions, {late:?} late");
    }

    #[test]
    fn first_question_comes_when_a_batch_is_usually_committed() {
        let mut times = commit_times();
        assert_eq!(first(&times, "a"), millis(100), "nothing is known");
        (0..100).for_each(|_| times.record("a", at(millis(2_000))));
        assert_eq!(first(&times, "a"), millis(2_000));
        assert_eq!(first(&times, "b"), millis(2_000), "that of the ledger");
        (0..100).for_each(|_| times.record("b", at(millis(800))));
        assert_eq!(["a", "b"].map(|id| first(&times, id)), [2_000, 800].map(millis));
        assert_eq!(times.question_times("b").interval, millis(100));
    }

    #[test]
    fn question_does_not_precede_the_event_of_a_commit() {
        let mut times = commit_times();
        let by_event = SeenCommit { by_event: true, ..at(millis(400)) };
        (0..100).for_each(|_| times.record("a", by_event));
        assert_eq!(first(&times, "a"), millis(520));
        times.record("a", at(millis(400)));
        assert_eq!(first(&times, "a"), millis(400), "no event told of the last commit");
    }

    #[test]
    fn intervals_are_bounded() {
        let mut times = commit_times();
        times.record("quick", at(millis(1)));
        times.record("slow", at(Duration::MAX / 2));
        let interval = |service| times.question_times(service).interval;
        assert_eq!(["quick", "slow"].map(interval), [100, 500].map(millis));
        assert_eq!(first(&times, "quick"), millis(100));
        assert_eq!(first(&times, "slow"), millis(3_000));
        let mut fixed = CommitTimes::new(millis(100), millis(2));
        fixed.record("a", at(millis(800)));
        assert_eq!(fixed.question_times("a").interval, millis(2), "the longest interval counts");
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
    fn services_are_bounded() {
        let mut times = commit_times();
        let services = CommitTimes::MAX_SERVICES + 10;
        (0..services).for_each(|number| times.record(&number.to_string(), at(millis(800))));
        assert!(times.services.len() <= CommitTimes::MAX_SERVICES);
        assert_eq!(first(&times, "0"), millis(800), "that of the ledger");
    }
}
