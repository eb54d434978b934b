//! When a node did not answer, which explains why a circuit gave up a batch.

use std::{collections::VecDeque, time::Duration};

use grid_batch_core::MonotonicTime;

/// The times in which a node did not answer requests about a service.
#[derive(Default)]
pub(crate) struct UnansweredTimes {
    /// When the first unanswered request since the last answer was sent.
    unanswered_since: Option<MonotonicTime>,
    /// When the latest outages began and ended, the oldest first.
    latest: VecDeque<(MonotonicTime, MonotonicTime)>,
}

impl UnansweredTimes {
    /// How many outages are remembered.
    const REMEMBERED: usize = 8;

    /// Records whether the node answered a request that was sent at `asked_at`.
    pub(crate) fn record(
        &mut self,
        is_answered: bool,
        asked_at: MonotonicTime,
        now: MonotonicTime,
    ) {
        if !is_answered {
            self.unanswered_since.get_or_insert(asked_at);
        } else if let Some(since) = self.unanswered_since.take() {
            self.add(since, now);
        }
    }

    /// Adds a time in which the node did not answer, or the moment at which its event subscription broke.
    pub(crate) fn add(&mut self, since: MonotonicTime, until: MonotonicTime) {
        if self.latest.len() >= Self::REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back((since, until));
    }

    /// Whether the node was away at some time since then.
    pub(crate) fn was_away(&self, since: MonotonicTime) -> bool {
        self.last_end().is_some_and(|end| end >= since)
    }

    /// The longest outage since `start` after which the node has answered again.
    pub(crate) fn longest(&self, start: MonotonicTime) -> Duration {
        let lengths = self.latest.iter().map(|(since, until)| until.since((*since).max(start)));
        lengths.max().unwrap_or_default()
    }

    /// When the last outage ended.
    pub(crate) fn last_end(&self) -> Option<MonotonicTime> {
        self.latest.back().map(|(_, until)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn outage_lasts_until_the_next_answer() {
        let mut outages = UnansweredTimes::default();
        let longest = |outages: &UnansweredTimes, since| outages.longest(at(since)).as_secs();
        outages.record(true, at(1), at(1));
        outages.record(false, at(10), at(22));
        outages.record(false, at(25), at(37));
        assert_eq!(longest(&outages, 0), 0, "it lasts");
        outages.record(true, at(40), at(50));
        assert_eq!([0, 30, 60].map(|since| longest(&outages, since)), [40, 20, 0]);
        assert_eq!([50, 51].map(|since| outages.was_away(at(since))), [true, false]);
    }

    #[test]
    fn broken_subscription_is_an_outage_without_duration() {
        let mut outages = UnansweredTimes::default();
        outages.add(at(5), at(5));
        assert!(outages.was_away(at(5)) && !outages.was_away(at(6)));
        assert_eq!(outages.longest(at(0)), Duration::ZERO);
        assert_eq!(outages.last_end(), Some(at(5)));
    }

    #[test]
    fn few_outages_are_remembered() {
        let mut outages = UnansweredTimes::default();
        outages.record(false, at(0), at(0));
        outages.record(true, at(100), at(100));
        assert_eq!(outages.longest(at(0)).as_secs(), 100);
        for seconds in 0..UnansweredTimes::REMEMBERED as u64 {
            outages.add(at(200 + seconds), at(200 + seconds));
        }
        assert_eq!(outages.longest(at(0)), Duration::ZERO);
    }
}
