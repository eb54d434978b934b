use std::{collections::HashMap, time::Duration};

use grid_batch_core::PollPace;

/// How long batches take from their acceptance to their commit, as this process has seen it: a moving
/// average for each service, and one for the ledger, which counts for the other services.
#[derive(Debug)]
pub(crate) struct CommitTimes {
    ledger: Option<Duration>,
    services: HashMap<String, Duration>,
    shortest_interval: Duration,
    longest_interval: Duration,
}

impl CommitTimes {
    /// The weight of a new time is one part of this many.
    const PARTS: u32 = 8;
    /// The greatest number of services that are remembered.
    const MAX_SERVICES: usize = 10_000;

    /// Learns first intervals between these two.
    pub(crate) fn new(shortest_interval: Duration, longest_interval: Duration) -> Self {
        Self { ledger: None, services: HashMap::new(), shortest_interval, longest_interval }
    }

    pub(crate) fn record(&mut self, service_id: &str, time: Duration) {
        // All longer times lead to the same interval. One of them must not count for many others.
        let time = time.min(self.longest_interval.saturating_mul(PollPace::PART));
        self.ledger = Some(average(self.ledger, time));
        if let Some(known) = self.services.get_mut(service_id) {
            *known = average(Some(*known), time);
            return;
        }
        if self.services.len() >= Self::MAX_SERVICES {
            self.services.clear();
        }
        self.services.insert(service_id.to_owned(), time);
    }

    /// How long after its acceptance a batch of the service is first asked for: the shortest interval
    /// while nothing is known.
    ///
    /// A quarter of the usual time, so that an end without an event is noticed after at most five
    /// quarters of it.
    pub(crate) fn first_interval(&self, service_id: &str) -> Duration {
        let usual = self.services.get(service_id).copied().or(self.ledger).unwrap_or_default();
        (usual / PollPace::PART).max(self.shortest_interval).min(self.longest_interval)
    }
}

fn average(known: Option<Duration>, time: Duration) -> Duration {
    let parts = CommitTimes::PARTS;
    known.map_or(time, |known| known.saturating_mul(parts - 1).saturating_add(time) / parts)
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

    #[test]
    fn first_interval_is_a_quarter_of_the_usual_time() {
        let mut times = commit_times();
        assert_eq!(times.first_interval("a"), millis(100), "nothing is known");
        (0..100).for_each(|_| times.record("a", millis(2_000)));
        assert_eq!(times.first_interval("a"), millis(500));
        assert_eq!(times.first_interval("b"), millis(500), "that of the ledger");
        (0..100).for_each(|_| times.record("b", millis(800)));
        assert_eq!(["a", "b"].map(|id| times.first_interval(id)), [500, 200].map(millis));
    }

    #[test]
    fn first_interval_is_bounded() {
        let mut times = commit_times();
        times.record("quick", millis(1));
        times.record("slow", Duration::MAX);
        assert_eq!(["quick", "slow"].map(|id| times.first_interval(id)), [100, 1_000].map(millis));
        let mut fixed = CommitTimes::new(millis(100), millis(2));
        fixed.record("a", millis(800));
        assert_eq!(fixed.first_interval("a"), millis(2), "the longest interval counts");
    }

    #[test]
    fn first_interval_follows_a_ledger_that_changes() {
        let mut times = commit_times();
        let mut learn = |time| {
            (0..40).for_each(|_| times.record("a", millis(time)));
            times.first_interval("a").as_millis()
        };
        assert!((500..=505).contains(&learn(2_000)));
        assert!((200..=210).contains(&learn(800)));
        assert!((495..=500).contains(&learn(2_000)));
    }

    #[test]
    fn one_slow_commit_changes_little() {
        let mut times = commit_times();
        (0..40).for_each(|_| times.record("a", millis(400)));
        times.record("a", Duration::from_hours(1));
        assert!(times.first_interval("a") < millis(250), "{:?}", times.first_interval("a"));
    }

    #[test]
    fn services_are_bounded() {
        let mut times = commit_times();
        let services = CommitTimes::MAX_SERVICES + 10;
        (0..services).for_each(|number| times.record(&number.to_string(), millis(800)));
        assert!(times.services.len() <= CommitTimes::MAX_SERVICES);
        assert_eq!(times.first_interval("0"), millis(200), "that of the ledger");
    }
}
