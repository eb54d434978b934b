use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use grid_batch_nodes::{RequestEnd, RequestGroup, RequestInFlight, RequestLimits};
use tokio::time::Instant;

use crate::instant::after;

/// A queue of jobs. Each service has at most one in flight.
///
/// A job is skipped if its service is busy or was started less than the gap ago, or if the limits of its node do not
/// allow it. Nodes take turns. Jobs of services whose last request failed come after all others.
#[derive(Debug)]
pub(crate) struct PerServiceQueue<J> {
    groups: VecDeque<WaitingJobs<J>>,
    /// How many jobs of each service wait.
    waiting: HashMap<String, usize>,
    in_flight: HashMap<String, RequestInFlight>,
    /// When the last job of each service started. Only entries younger than the gap are needed.
    started_at: HashMap<String, Instant>,
    gap: Duration,
    limits: RequestLimits,
}

#[derive(Debug)]
struct WaitingJobs<J> {
    group: RequestGroup,
    jobs: VecDeque<J>,
}

/// A job for one service.
pub(crate) trait ServiceJob {
    fn service(&self) -> &str;
}

impl<J: ServiceJob> PerServiceQueue<J> {
    /// A queue that obeys these limits and starts the jobs of one service at least `gap` apart.
    pub(crate) fn new(gap: Duration, limits: RequestLimits) -> Self {
        let (groups, waiting, in_flight, started_at) = Default::default();
        Self { groups, waiting, in_flight, started_at, gap, limits }
    }

    pub(crate) fn push(&mut self, job: J) {
        let group = self.limits.group(job.service());
        *self.waiting.entry(job.service().to_owned()).or_default() += 1;
        match self.groups.iter_mut().find(|waiting| waiting.group == group) {
            Some(waiting) => waiting.jobs.push_back(job),
            None => self.groups.push_back(WaitingJobs { group, jobs: [job].into() }),
        }
    }

    /// Starts the first job that may start, and returns it.
    pub(crate) fn start_next(&mut self, now: Instant) -> Option<J> {
        let (group, job) = self.find_ready(false, now).or_else(|| self.find_ready(true, now))?;
        let mut waiting = self.groups.remove(group)?;
        let job = waiting.jobs.remove(job)?;
        let request = self.limits.start(waiting.group);
        if !waiting.jobs.is_empty() {
            self.groups.push_back(waiting);
        }
        self.left(job.service());
        self.in_flight.insert(job.service().to_owned(), request);
        if !self.gap.is_zero() {
            self.started_at.insert(job.service().to_owned(), now);
        }
        Some(job)
    }

    /// Takes up to `count` other jobs of a service whose job was started, to be done together with it.
    pub(crate) fn take_more(&mut self, service: &str, count: usize) -> Vec<J> {
        let mut taken = Vec::new();
        for waiting in &mut self.groups {
            let mut kept = VecDeque::with_capacity(waiting.jobs.len());
            for job in waiting.jobs.drain(..) {
                if job.service() == service && taken.len() < count {
                    taken.push(job);
                } else {
                    kept.push_back(job);
                }
            }
            waiting.jobs = kept;
        }
        self.groups.retain(|waiting| !waiting.jobs.is_empty());
        taken.iter().for_each(|_| self.left(service));
        taken
    }

    /// The indexes of the first group of this kind with a job that may start, and of that job.
    fn find_ready(&self, is_retry: bool, now: Instant) -> Option<(usize, usize)> {
        let groups = self.groups.iter().enumerate();
        let mut groups = groups.filter(|(_, waiting)| waiting.group.is_retry() == is_retry);
        groups.find_map(|(index, waiting)| {
            let is_ready = |job: &J| self.may_start(job.service(), now);
            let may_start = self.limits.may_start(waiting.group);
            let job = may_start.then(|| waiting.jobs.iter().position(is_ready)).flatten()?;
            Some((index, job))
        })
    }

    /// Records that a job of this service has left the queue.
    fn left(&mut self, service: &str) {
        if let Some(count) = self.waiting.get_mut(service) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(service);
            }
        }
    }

    /// Records how the job of this service has ended.
    pub(crate) fn ended(&mut self, service: &str, end: RequestEnd) {
        if let Some(request) = self.in_flight.remove(service) {
            self.limits.end(request, service, end);
        }
    }

    /// Records that the job of this service started but nothing was sent.
    pub(crate) fn dropped(&mut self, service: &str) {
        if let Some(request) = self.in_flight.remove(service) {
            self.limits.give_back(request);
        }
    }

    /// Whether a new job of this service could start at once, apart from the limits of its node.
    pub(crate) fn is_ready(&self, service: &str, now: Instant) -> bool {
        self.may_start(service, now) && !self.is_busy(service)
    }

    fn may_start(&self, service: &str, now: Instant) -> bool {
        let is_gap_over = |started_at: &Instant| now.duration_since(*started_at) >= self.gap;
        !self.is_in_flight(service) && self.started_at.get(service).is_none_or(is_gap_over)
    }

    /// When the first gap ends.
    pub(crate) fn next_gap_end(&mut self, now: Instant) -> Option<Instant> {
        let gap = self.gap;
        self.started_at.retain(|_, started_at| now.duration_since(*started_at) < gap);
        self.started_at.values().min().map(|started_at| after(*started_at, gap))
    }

    pub(crate) fn is_in_flight(&self, service: &str) -> bool {
        self.in_flight.contains_key(service)
    }

    /// Whether a job of this service is waiting or in flight.
    pub(crate) fn is_busy(&self, service: &str) -> bool {
        self.is_in_flight(service) || self.waiting.contains_key(service)
    }

    /// Whether no job is waiting.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Removes the jobs that have not started.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.waiting.clear();
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grid_batch_core::ManualClock;
    use grid_batch_core::polling::PollPace;
    use grid_batch_nodes::{NodePool, NodePoolOptions};

    use super::*;

    const GAP: Duration = Duration::from_millis(20);

    fn queue<'a>(gap: Duration) -> PerServiceQueue<&'a str> {
        let pace = PollPace { interval: GAP, longest: GAP };
        let services = ["a", "b"].iter().flat_map(|node| {
            let names = ["", "1", "2", "3"].map(|number| format!("{node}{number}"));
            names.map(|name| (name.parse().unwrap(), (*node).to_owned()))
        });
        let pool = NodePool::with_options(NodePoolOptions {
            services: services.collect(),
            clock: Arc::new(ManualClock::default()),
            ..NodePoolOptions::default()
        });
        let limits = RequestLimits::new(pool, pace);
        limits.set_connections(4);
        PerServiceQueue::new(gap, limits)
    }

    impl ServiceJob for &str {
        fn service(&self) -> &str {
            self
        }
    }

    #[test]
    fn busy_service_does_not_block_others() {
        let mut queue = queue(Duration::ZERO);
        let now = Instant::now();
        ["a", "a", "b"].into_iter().for_each(|job| queue.push(job));
        assert_eq!([(); 3].map(|()| queue.start_next(now)), [Some("a"), Some("b"), None]);
        assert_eq!((queue.in_flight(), queue.is_empty()), (2, false));
        queue.ended("a", RequestEnd::Answered);
        assert_eq!(queue.start_next(now), Some("a"));
        assert!(queue.is_empty());
    }

    #[test]
    fn jobs_of_a_service_start_a_gap_apart() {
        let mut queue = queue(GAP);
        let now = Instant::now();
        ["a", "a"].into_iter().for_each(|job| queue.push(job));
        assert_eq!(queue.start_next(now), Some("a"));
        queue.ended("a", RequestEnd::Answered);
        assert_eq!(queue.start_next(now + GAP - Duration::from_millis(1)), None);
        assert_eq!(queue.next_gap_end(now), Some(now + GAP));
        assert_eq!(queue.start_next(now + GAP), Some("a"));
        assert_eq!(queue.next_gap_end(now + GAP + GAP), None);
    }

    #[test]
    fn nodes_take_turns_and_failed_services_come_last() {
        let mut queue = queue(Duration::ZERO);
        let now = Instant::now();
        for service in ["a1", "b1"] {
            queue.push(service);
            queue.start_next(now);
        }
        queue.ended("a1", RequestEnd::Failed);
        queue.ended("b1", RequestEnd::Answered);
        ["a1", "a2", "a3", "b1"].into_iter().for_each(|job| queue.push(job));
        let started = [(); 4].map(|()| queue.start_next(now));
        assert_eq!(started, [Some("a2"), Some("b1"), Some("a3"), None], "the node has its share");
        queue.ended("a2", RequestEnd::Answered);
        assert_eq!(queue.start_next(now), Some("a1"));
        assert!(queue.is_empty() && !queue.is_busy("a2") && queue.is_busy("a1"));
    }

    #[test]
    fn other_jobs_of_a_started_service_are_taken_with_it() {
        let mut queue = queue(Duration::ZERO);
        let now = Instant::now();
        ["a", "a", "b", "a", "a"].into_iter().for_each(|job| queue.push(job));
        assert_eq!(queue.start_next(now), Some("a"));
        assert_eq!(queue.take_more("a", 2), ["a"; 2]);
        assert_eq!((queue.start_next(now), queue.start_next(now)), (Some("b"), None));
        queue.ended("a", RequestEnd::Answered);
        assert_eq!(queue.start_next(now), Some("a"));
        assert_eq!((queue.take_more("a", 2), queue.is_empty()), (Vec::new(), true));
        queue.ended("a", RequestEnd::Answered);
        assert!(!queue.is_busy("a"));
    }
}
