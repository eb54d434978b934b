use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::instant::after;

/// A queue of jobs, of which each service has at most one in flight.
///
/// A job whose service is busy, or was started less than the gap ago, is passed over.
#[derive(Debug)]
pub(crate) struct PerServiceQueue<J> {
    waiting: VecDeque<J>,
    in_flight: HashSet<String>,
    /// When the last job of each service started. Only entries younger than the gap are needed.
    started_at: HashMap<String, Instant>,
    gap: Duration,
}

/// A job for one service.
pub(crate) trait ServiceJob {
    fn service(&self) -> &str;
}

impl<J: ServiceJob> PerServiceQueue<J> {
    /// A queue that starts the jobs of one service at least `gap` apart.
    pub(crate) fn new(gap: Duration) -> Self {
        let (waiting, in_flight, started_at) = Default::default();
        Self { waiting, in_flight, started_at, gap }
    }

    pub(crate) fn push(&mut self, job: J) {
        self.waiting.push_back(job);
    }

    /// Starts the first job that may start, and returns it.
    pub(crate) fn start_next(&mut self, now: Instant) -> Option<J> {
        let index = self.waiting.iter().position(|job| self.may_start(job.service(), now))?;
        let job = self.waiting.remove(index)?;
        self.in_flight.insert(job.service().to_owned());
        self.started_at.insert(job.service().to_owned(), now);
        Some(job)
    }

    /// Records that the job of this service has ended.
    pub(crate) fn ended(&mut self, service: &str) {
        self.in_flight.remove(service);
    }

    /// Whether a new job of this service could start at once.
    pub(crate) fn is_ready(&self, service: &str, now: Instant) -> bool {
        self.may_start(service, now) && !self.is_busy(service)
    }

    fn may_start(&self, service: &str, now: Instant) -> bool {
        let is_gap_over = |started_at: &Instant| now.duration_since(*started_at) >= self.gap;
        !self.in_flight.contains(service) && self.started_at.get(service).is_none_or(is_gap_over)
    }

    /// When the first gap ends.
    pub(crate) fn next_gap_end(&mut self, now: Instant) -> Option<Instant> {
        let gap = self.gap;
        self.started_at.retain(|_, started_at| now.duration_since(*started_at) < gap);
        self.started_at.values().min().map(|started_at| after(*started_at, gap))
    }

    /// Whether a job of this service is waiting or in flight.
    pub(crate) fn is_busy(&self, service: &str) -> bool {
        self.in_flight.contains(service) || self.waiting().any(|job| job.service() == service)
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &J> {
        self.waiting.iter()
    }

    /// Whether no job is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes the jobs that have not started.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_millis(20);

    impl ServiceJob for &str {
        fn service(&self) -> &str {
            self
        }
    }

    #[test]
    fn busy_service_does_not_block_others() {
        let mut queue = PerServiceQueue::new(Duration::ZERO);
        let now = Instant::now();
        ["a", "a", "b"].into_iter().for_each(|job| queue.push(job));
        assert_eq!([(); 3].map(|()| queue.start_next(now)), [Some("a"), Some("b"), None]);
        assert_eq!((queue.in_flight(), queue.is_empty()), (2, false));
        queue.ended("a");
        assert_eq!(queue.start_next(now), Some("a"));
        assert!(queue.is_empty());
    }

    #[test]
    fn jobs_of_a_service_start_a_gap_apart() {
        let mut queue = PerServiceQueue::new(GAP);
        let now = Instant::now();
        ["a", "a"].into_iter().for_each(|job| queue.push(job));
        assert_eq!(queue.start_next(now), Some("a"));
        queue.ended("a");
        assert_eq!(queue.start_next(now + GAP - Duration::from_millis(1)), None);
        assert_eq!(queue.next_gap_end(now), Some(now + GAP));
        assert_eq!(queue.start_next(now + GAP), Some("a"));
        assert_eq!(queue.next_gap_end(now + GAP + GAP), None);
    }
}
