use std::{
    collections::{HashMap, HashSet},
    fmt, mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::polling::PollPace;
use grid_batch_core::{BatchError, MonotonicTime};
use grid_batch_support::{Backoff, lock};

use crate::NodePool;

/// Limits how many requests of one component are in flight at each node, and how many of them repeat a failed one.
/// Nodes and services that do not answer thus leave connections free for the others. Clones share their state.
///
/// - A node has at most as many requests in flight as connections are free.
/// - Requests of services that failed last time share a part of the connections.
/// - A node that does not answer a request of any component has one request at a time.
/// - The same applies to a node at which several services failed one after the other and none succeeded. Services that
///   failed before wait until the node's pause is over. The pause grows with each failure.
#[derive(Clone)]
pub struct RequestLimits {
    pool: NodePool,
    pauses: Backoff,
    state: Arc<Mutex<LimitState>>,
}

#[derive(Debug, Default)]
struct LimitState {
    connections: usize,
    in_flight: usize,
    retries_in_flight: usize,
    nodes: HashMap<usize, NodeRequests>,
    /// The services whose last request failed.
    failed_services: HashSet<String>,
    /// Nodes that were failing and answer again.
    returned: HashSet<usize>,
}

#[derive(Debug, Default)]
struct NodeRequests {
    in_flight: usize,
    /// The number of services that failed one after the other since the last success.
    failures: u32,
    /// Set while the node is failing.
    pause: Option<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: MonotonicTime,
    /// How many pauses directly preceded this one.
    earlier: u32,
}

/// Which requests are limited together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestGroup {
    node: Option<usize>,
    /// The last request of the service failed.
    is_retry: bool,
}

/// A request in flight.
#[derive(Debug)]
pub struct RequestInFlight(RequestGroup);

/// How a request ended, for the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEnd {
    /// It succeeded.
    Answered,
    /// It failed, but the node has answered.
    Failed,
    /// The node did not answer, or answered that it cannot now.
    NotAnswered,
}

/// A node is failing after this many services failed one after the other.
const FAILING_AFTER: u32 = 3;

/// Repeated requests may use one in this many connections, but at least one.
const RETRY_PART: usize = 4;

/// Limit on the number of services that are remembered as failed.
const MAX_FAILED_SERVICES: usize = 100_000;

impl RequestLimits {
    /// Limits for services at the nodes of this pool. With fewer than two nodes, only repeated requests are limited.
    /// `pace` gives the pauses after which failing nodes are tried again.
    pub fn new(pool: NodePool, pace: PollPace) -> Self {
        let pauses = Backoff { first: pace.interval, longest: pace.outage_pause() };
        Self { pool, pauses, state: Arc::default() }
    }

    /// Sets the limit on the number of requests in flight.
    pub fn set_connections(&self, connections: usize) {
        lock(&self.state).connections = connections;
    }

    /// The group of requests with which those for this service are limited.
    pub fn group(&self, service: &str) -> RequestGroup {
        let is_retry = lock(&self.state).failed_services.contains(service);
        RequestGroup { node: self.pool.asked_node_of(service), is_retry }
    }

    /// Whether a request of this group may start now.
    pub fn may_start(&self, group: RequestGroup) -> bool {
        let (is_out, now) = (self.is_out(group), self.pool.monotonic());
        let state = lock(&self.state);
        let free = state.connections.saturating_sub(state.in_flight);
        let most_retries = (state.connections / RETRY_PART).max(1);
        let retry_is_free = state.retries_in_flight < most_retries;
        let node = group.node.and_then(|node| state.nodes.get(&node));
        let (in_flight, pause) = node.map_or((0, None), |node| (node.in_flight, node.pause));
        free > 0
            && (group.node.is_none() || in_flight < free)
            && (!group.is_retry || retry_is_free)
            && (!is_out && pause.is_none() || in_flight == 0 && retry_is_free)
            && pause.is_none_or(|pause| !group.is_retry || pause.until <= now)
    }

    /// Counts a request of this group that starts.
    pub fn start(&self, mut group: RequestGroup) -> RequestInFlight {
        group.is_retry |= self.is_out(group);
        let mut state = lock(&self.state);
        if let Some(index) = group.node {
            let node = state.nodes.entry(index).or_default();
            node.in_flight += 1;
            group.is_retry |= node.pause.is_some();
        }
        state.in_flight += 1;
        state.retries_in_flight += usize::from(group.is_retry);
        RequestInFlight(group)
    }

    fn is_out(&self, group: RequestGroup) -> bool {
        group.node.is_some_and(|node| self.pool.is_out(node))
    }

    /// Takes back the count of a request that was not sent.
    pub fn give_back(&self, request: RequestInFlight) {
        lock(&self.state).give_back(&request);
    }

    /// Records the end of a request for this service.
    pub fn end(&self, request: RequestInFlight, service: &str, end: RequestEnd) {
        let now = self.pool.monotonic();
        let mut state = lock(&self.state);
        state.give_back(&request);
        let failed_before = state.record_service(service, end);
        let Some(index) = request.0.node else { return };
        let node = state.nodes.entry(index).or_default();
        if end != RequestEnd::NotAnswered {
            node.failures = 0;
            if node.pause.take().is_some() {
                state.returned.insert(index);
            }
            return;
        }
        // One service that keeps failing does not make its node a failing one.
        node.failures += u32::from(!failed_before);
        if node.failures >= FAILING_AFTER || node.pause.is_some() {
            let earlier = node.pause.map_or(0, |pause| pause.earlier.saturating_add(1));
            let until = now.plus(self.pauses.whole_delay(earlier));
            node.pause = Some(Pause { until, earlier });
        }
    }

    /// Ends the pause of this service's node: there is a sign that the node may answer.
    pub fn end_pause(&self, service: &str) {
        let Some(node) = self.pool.asked_node_of(service) else { return };
        let now = self.pool.monotonic();
        if let Some(NodeRequests { pause: Some(pause), .. }) =
            lock(&self.state).nodes.get_mut(&node)
        {
            pause.until = now;
        }
    }

    /// Ends the pauses of all nodes: one of them is back.
    pub fn end_pauses(&self) {
        let now = self.pool.monotonic();
        let mut state = lock(&self.state);
        let pauses = state.nodes.values_mut().filter_map(|node| node.pause.as_mut());
        pauses.for_each(|pause| pause.until = now);
    }

    /// The time until the first of the present pauses ends.
    pub fn next_pause_end(&self) -> Option<Duration> {
        let now = self.pool.monotonic();
        let state = lock(&self.state);
        let pauses = state.nodes.values().filter_map(|node| node.pause);
        pauses.filter(|pause| pause.until > now).map(|pause| pause.until.since(now)).min()
    }

    /// Takes the nodes that answer again.
    pub fn take_returned(&self) -> HashSet<usize> {
        mem::take(&mut lock(&self.state).returned)
    }

    /// Whether the service is asked about at one of these nodes.
    pub fn is_at(&self, service: &str, nodes: &HashSet<usize>) -> bool {
        self.pool.asked_node_of(service).is_some_and(|node| nodes.contains(&node))
    }
}

impl RequestGroup {
    /// Whether the last request of the service failed.
    pub fn is_retry(self) -> bool {
        self.is_retry
    }
}

impl LimitState {
    fn give_back(&mut self, RequestInFlight(group): &RequestInFlight) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.retries_in_flight = self.retries_in_flight.saturating_sub(usize::from(group.is_retry));
        if let Some(node) = group.node.and_then(|node| self.nodes.get_mut(&node)) {
            node.in_flight = node.in_flight.saturating_sub(1);
        }
    }

    /// Returns whether the service had failed last time.
    fn record_service(&mut self, service: &str, end: RequestEnd) -> bool {
        if end == RequestEnd::Answered {
            return self.failed_services.remove(service);
        }
        if self.failed_services.len() >= MAX_FAILED_SERVICES {
            self.failed_services.clear();
        }
        !self.failed_services.insert(service.to_owned())
    }
}

impl RequestEnd {
    /// The end of a request with this result.
    pub fn of<T>(result: &Result<T, BatchError>) -> Self {
        match result {
            Ok(_) => Self::Answered,
            Err(BatchError::Unavailable(_)) => Self::NotAnswered,
            Err(_) => Self::Failed,
        }
    }
}

impl fmt::Debug for RequestLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLimits").field("state", &*lock(&self.state)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;
    use crate::NodePoolOptions;

    const SECOND: Duration = Duration::from_secs(1);
    const PACE: PollPace = PollPace { interval: SECOND, longest: Duration::from_secs(60) };

    /// Limits for services whose first letter is the name of their node.
    fn limits(connections: usize) -> (RequestLimits, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let services = "abcdefghxyz".chars().flat_map(|node| {
            (1..=9)
                .map(move |number| (format!("{node}{number}").parse().unwrap(), node.to_string()))
        });
        let pool = NodePool::with_options(NodePoolOptions {
            services: services.collect(),
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        let limits = RequestLimits::new(pool, PACE);
        limits.set_connections(connections);
        (limits, clock)
    }

    /// Starts a request for each of these services that may start.
    fn start(
        limits: &RequestLimits,
        services: &[&'static str],
    ) -> Vec<(&'static str, RequestInFlight)> {
        let mut started = Vec::new();
        for service in services {
            let group = limits.group(service);
            if limits.may_start(group) {
                started.push((*service, limits.start(group)));
            }
        }
        started
    }

    fn end(limits: &RequestLimits, started: Vec<(&'static str, RequestInFlight)>, end: RequestEnd) {
        started.into_iter().for_each(|(service, request)| limits.end(request, service, end));
    }

    #[test]
    fn services_without_a_node_may_use_all_connections() {
        let limits = RequestLimits::new(NodePool::default(), PACE);
        limits.set_connections(8);
        assert_eq!(start(&limits, &["a"; 20]).len(), 8);
    }

    #[test]
    fn each_of_several_nodes_leaves_connections_free() {
        let (limits, _) = limits(16);
        let first = start(&limits, &["a1", "b1"]);
        end(&limits, first, RequestEnd::Answered);
        let at_a = start(&limits, &["a1"; 20]);
        assert_eq!(at_a.len(), 8);
        assert_eq!(start(&limits, &["b1"; 20]).len(), 4);
        end(&limits, at_a, RequestEnd::Answered);
        assert_eq!(start(&limits, &["c1"; 20]).len(), 6, "half of what is left");
    }

    #[test]
    fn failing_node_has_one_request_at_a_time() {
        let (limits, clock) = limits(16);
        let services = ["a1", "a2", "a3"];
        let started = start(&limits, &services);
        end(&limits, started, RequestEnd::NotAnswered);
        assert_eq!(start(&limits, &services).len(), 0, "they wait for the pause");
        let unknown = start(&limits, &["a4", "a5"]);
        assert_eq!(unknown.len(), 1, "a service that has not failed is tried without a pause");
        end(&limits, unknown, RequestEnd::NotAnswered);
        for seconds in [2, 4, 4] {
            clock.advance(SECOND * seconds - Duration::from_millis(1));
            assert_eq!(start(&limits, &services).len(), 0, "{seconds} s");
            assert_eq!(limits.next_pause_end(), Some(Duration::from_millis(1)));
            clock.advance(Duration::from_millis(1));
            let started = start(&limits, &services);
            assert_eq!(started.len(), 1, "{seconds} s");
            end(&limits, started, RequestEnd::NotAnswered);
        }
        limits.end_pause("a1");
        let started = start(&limits, &services);
        end(&limits, started, RequestEnd::Answered);
        assert_eq!((limits.take_returned(), limits.next_pause_end()), (HashSet::from([0]), None));
        assert_eq!(start(&limits, &services).len(), 3);
    }

    #[test]
    fn node_that_did_not_answer_another_part_has_one_request() {
        let (limits, clock) = limits(16);
        limits.pool.failed("a", "reset");
        clock.advance(SECOND);
        let started = start(&limits, &["a1", "a2", "b1", "b2"]);
        let services: Vec<_> = started.iter().map(|(service, _)| *service).collect();
        assert_eq!(services, ["a1", "b1", "b2"]);
        limits.pool.answered("a");
        assert_eq!(start(&limits, &["a2", "a3"]).len(), 2);
    }

    #[test]
    fn failing_services_leave_most_connections_to_others() {
        let (limits, _) = limits(16);
        let failing = ["a1", "a2", "a3", "a4", "a5", "a6"];
        for _ in 0..3 {
            let started = start(&limits, &failing);
            end(&limits, started, RequestEnd::Failed);
        }
        assert_eq!(start(&limits, &failing).len(), 4);
        assert_eq!(start(&limits, &["b7"; 20]).len(), 6, "half of what is left");
    }

    #[test]
    fn service_that_fails_again_does_not_stop_its_node() {
        let (limits, _) = limits(16);
        for _ in 0..10 {
            let started = start(&limits, &["a1", "a2"]);
            end(&limits, started, RequestEnd::NotAnswered);
        }
        assert_eq!(limits.next_pause_end(), None);
        assert_eq!(start(&limits, &["a3"; 8]).len(), 8);
    }

    #[test]
    fn many_failing_nodes_share_a_part_of_the_connections() {
        let (limits, clock) = limits(16);
        const SERVICES: [[&str; 3]; 8] = [
            ["a1", "a2", "a3"],
            ["b1", "b2", "b3"],
            ["c1", "c2", "c3"],
            ["d1", "d2", "d3"],
            ["e1", "e2", "e3"],
            ["f1", "f2", "f3"],
            ["g1", "g2", "g3"],
            ["h1", "h2", "h3"],
        ];
        for services in SERVICES {
            let started = start(&limits, &services);
            end(&limits, started, RequestEnd::NotAnswered);
        }
        clock.advance(SECOND);
        let all: Vec<&str> = SERVICES.concat();
        assert_eq!(start(&limits, &all).len(), 4);
        assert_eq!(start(&limits, &["x1", "y1", "z1"]).len(), 3);
    }
}
