use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::looks::after;

/// Jobs in the order they came, at most one of each service under way.
///
/// A job whose service is under way, or was too recently, lets others pass.
#[derive(Debug)]
pub(crate) struct Line<J> {
    waiting: VecDeque<J>,
    under_way: HashSet<String>,
    /// When the latest of each service began; only what is younger than the gap.
    begun: HashMap<String, Instant>,
    gap: Duration,
}

/// Something to be done for one service.
pub(crate) trait Job {
    fn service(&self) -> &str;
}

impl<J: Job> Line<J> {
    /// A line where jobs of one service begin at least `gap` apart.
    pub(crate) fn new(gap: Duration) -> Self {
        let (waiting, under_way, begun) = Default::default();
        Self { waiting, under_way, begun, gap }
    }

    pub(crate) fn push(&mut self, job: J) {
        self.waiting.push_back(job);
    }

    /// The first job that may begin, which it does.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<J> {
        let place = self.waiting.iter().position(|job| self.is_ready(job.service(), now))?;
        let job = self.waiting.remove(place)?;
        self.under_way.insert(job.service().to_owned());
        self.begun.insert(job.service().to_owned(), now);
        Some(job)
    }

    pub(crate) fn ended(&mut self, service: &str) {
        self.under_way.remove(service);
    }

    /// Whether nothing of this service waits, and it could begin.
    pub(crate) fn is_free(&self, service: &str, now: Instant) -> bool {
        self.is_ready(service, now) && !self.is_busy(service)
    }

    fn is_ready(&self, service: &str, now: Instant) -> bool {
        !self.under_way.contains(service)
            && self.begun.get(service).is_none_or(|begun| now.duration_since(*begun) >= self.gap)
    }

    /// When the next gap ends that someone may wait for.
    pub(crate) fn next_gap_end(&mut self, now: Instant) -> Option<Instant> {
        let gap = self.gap;
        self.begun.retain(|_, begun| now.duration_since(*begun) < gap);
        self.begun.values().min().map(|begun| after(*begun, gap))
    }

    /// Whether a job of this service waits or is under way.
    pub(crate) fn is_busy(&self, service: &str) -> bool {
        self.under_way.contains(service) || self.waiting().any(|job| job.service() == service)
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &J> {
        self.waiting.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_millis(20);

    impl Job for &str {
        fn service(&self) -> &str {
            self
        }
    }

    #[test]
    fn one_of_each_service_begins_in_order_and_lets_none_of_another_wait() {
        let mut line = Line::new(Duration::ZERO);
        let now = Instant::now();
        ["a", "a", "b"].into_iter().for_each(|job| line.push(job));
        assert_eq!(
            [line.begin(now), line.begin(now), line.begin(now)],
            [Some("a"), Some("b"), None]
        );
        assert_eq!((line.under_way(), line.is_empty()), (2, false));
        line.ended("a");
        assert_eq!(line.begin(now), Some("a"));
        assert!(line.is_empty());
    }

    #[test]
    fn jobs_of_a_service_begin_a_gap_apart() {
        let mut line = Line::new(GAP);
        let now = Instant::now();
        ["a", "a"].into_iter().for_each(|job| line.push(job));
        assert_eq!(line.begin(now), Some("a"));
        line.ended("a");
        assert_eq!(line.begin(now + GAP - Duration::from_millis(1)), None);
        assert_eq!(line.next_gap_end(now), Some(now + GAP));
        assert_eq!(line.begin(now + GAP), Some("a"));
        assert_eq!(line.next_gap_end(now + GAP + GAP), None);
    }
}
