use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{
    Clock, MonotonicTime, Outcome, ScopeId, StatusUrlResolver, SystemClock, UrlResolver,
};
use grid_batch_support::redact_url;
use log::{info, warn};
use thiserror::Error;

use crate::resolver::{UrlHealth, node_memory::NodeMemory};

/// A resolver for several nodes of one ledger.
///
/// A service stays with one node, because another one may not have applied its last batch yet. It
/// changes its node only when that node fails. A node that fails is unhealthy and not used for a while.
/// Then it is tried with one batch, and it is healthy again when it answers. If all nodes are unhealthy,
/// the one that failed longest ago is used.
pub struct NodeUrlResolver<S> {
    choice: NodeChoice,
    retry_after: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<NodeStates>,
    scope: PhantomData<fn() -> S>,
}

/// The node that a service begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// Services are spread over all nodes, by a hash of their ids.
    #[default]
    Spread,
    /// All begin with the first one, in the order of the configuration.
    First,
}

/// A resolver was created without nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the ledger has no nodes: give the address of at least one")]
pub struct NoNodesError;

struct NodeStates {
    nodes: Vec<Node>,
    /// The present node of each service that has left the one it began with.
    moved: HashMap<String, usize>,
    memory: NodeMemory,
}

struct Node {
    url: String,
    /// When the node last failed, or was last tried after that. `None`: it is healthy.
    unhealthy_since: Option<MonotonicTime>,
}

impl<S> NodeUrlResolver<S> {
    /// Nodes at these addresses, with the services spread over them. An unhealthy node is tried again
    /// after 30 s, and the nodes of 100,000 batches are remembered.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, NoNodesError> {
        let node = |url| Node { url, unhealthy_since: None };
        let nodes: Vec<Node> = urls.into_iter().map(Into::into).map(node).collect();
        if nodes.is_empty() {
            return Err(NoNodesError);
        }
        Ok(Self {
            choice: NodeChoice::default(),
            retry_after: Duration::from_secs(30),
            clock: Arc::new(SystemClock),
            state: Mutex::new(NodeStates {
                nodes,
                moved: HashMap::new(),
                memory: NodeMemory::new(100_000),
            }),
            scope: PhantomData,
        })
    }

    /// Sets which node a service begins with.
    #[must_use]
    pub fn with_choice(self, choice: NodeChoice) -> Self {
        Self { choice, ..self }
    }

    /// Sets the time after which an unhealthy node is tried again.
    #[must_use]
    pub fn with_retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after, ..self }
    }

    /// Sets of how many batches the node is remembered.
    #[must_use]
    pub fn with_memory(self, batches: usize) -> Self {
        self.lock().memory = NodeMemory::new(batches);
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The address of the first node that accepted this batch, if it is remembered. If none
    /// certainly accepted it, the first node that may have.
    pub fn node_of(&self, batch_header: &str) -> Option<String> {
        let state = self.lock();
        let node = state.memory.node_of(batch_header)?;
        state.nodes.get(node).map(|node| node.url.clone())
    }

    fn lock(&self) -> MutexGuard<'_, NodeStates> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ScopeId> UrlResolver for NodeUrlResolver<S> {
    type Id = S;

    fn url(&self, scope_id: &S) -> String {
        let now = self.clock.monotonic();
        let service_id = scope_id.service_id().as_str();
        let mut state = self.lock();
        let first = state.first_node(self.choice, service_id);
        let present = state.moved.get(service_id).copied().unwrap_or(first);
        let chosen = state.choose(present, now, self.retry_after);
        if chosen == first {
            state.moved.remove(service_id);
        } else if chosen != present {
            state.moved.insert(service_id.to_owned(), chosen);
        }
        let node = &mut state.nodes[chosen];
        // An unhealthy node is tried with one batch; the others wait for its answer.
        node.unhealthy_since = node.unhealthy_since.map(|_| now);
        node.url.clone()
    }
}

impl<S> StatusUrlResolver for NodeUrlResolver<S> {
    /// The node that received the batch, then the healthy nodes, first that of the service, then the
    /// others, first the one that failed longest ago. This does not change the node of the service.
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String> {
        let state = self.lock();
        let received = state.memory.node_of(batch_id);
        let first = state.first_node(self.choice, service_id);
        let present = state.moved.get(service_id).copied().unwrap_or(first);
        let mut nodes: Vec<(usize, &Node)> = state.nodes.iter().enumerate().collect();
        nodes.sort_by_key(|(index, node)| {
            (Some(*index) != received, node.unhealthy_since, *index != present)
        });
        nodes.into_iter().map(|(_, node)| node.url.clone()).collect()
    }
}

impl NodeStates {
    /// The node with which a service begins, in every process with the same nodes.
    fn first_node(&self, choice: NodeChoice, service_id: &str) -> usize {
        match choice {
            NodeChoice::First => 0,
            NodeChoice::Spread => {
                let mut hasher = DefaultHasher::new();
                service_id.hash(&mut hasher);
                let count = self.nodes.len() as u64;
                usize::try_from(hasher.finish() % count).unwrap_or_default()
            }
        }
    }

    /// A usable node: `start`, or the next one after it.
    fn choose(&self, start: usize, now: MonotonicTime, retry_after: Duration) -> usize {
        let count = self.nodes.len();
        let is_usable = |node: &usize| match self.nodes[*node].unhealthy_since {
            None => true,
            Some(since) => now.since(since) >= retry_after,
        };
        let longest_unhealthy = || (0..count).min_by_key(|node| self.nodes[*node].unhealthy_since);
        let mut in_order = (start..start + count).map(|node| node % count);
        in_order.find(is_usable).or_else(longest_unhealthy).unwrap_or(0)
    }
}

impl<S: ScopeId> UrlHealth for NodeUrlResolver<S> {
    fn report(&self, batch_header: &str, url: &str, outcome: Outcome) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let Some(index) = state.nodes.iter().position(|node| node.url == url) else { return };
        let node = &mut state.nodes[index];
        let was_unhealthy = node.unhealthy_since.is_some();
        let failed = is_failure(outcome);
        node.unhealthy_since = failed.then_some(now);
        if outcome == Outcome::Accepted || outcome == Outcome::Ambiguous {
            state.memory.remember(batch_header, index, outcome == Outcome::Accepted);
        }
        drop(state);
        match (was_unhealthy, failed) {
            (false, true) => {
                warn!(node:% = redact_url(url), outcome:% = outcome; "node marked unhealthy");
            }
            (true, false) => info!(node:% = redact_url(url); "node is healthy again"),
            _ => {}
        }
    }
}

/// Whether another node might have succeeded.
fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NotSent | Outcome::Ambiguous | Outcome::Refused => true,
        Outcome::Accepted
        | Outcome::Committed
        | Outcome::Busy
        | Outcome::Parked
        | Outcome::PoolParked
        | Outcome::Rejected
        | Outcome::RefusedBatch
        | Outcome::NotProvedNew => false,
    }
}

impl<S> fmt::Debug for NodeUrlResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let nodes = state.nodes.iter().map(|node| (redact_url(&node.url), node.unhealthy_since));
        f.debug_map().entries(nodes).finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{GlobalScopeId, ManualClock, ServiceScopeId, Timestamp};

    use super::*;

    const RETRY_AFTER: Duration = Duration::from_secs(30);

    /// The nodes `a`, `b` and `c`. The only service begins with `a`.
    fn nodes() -> (NodeUrlResolver<GlobalScopeId>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let nodes = NodeUrlResolver::new(["a", "b", "c"])
            .unwrap()
            .with_choice(NodeChoice::First)
            .with_retry_after(RETRY_AFTER)
            .with_memory(2)
            .with_clock(Arc::<ManualClock>::clone(&clock));
        (nodes, clock)
    }

    fn next(nodes: &NodeUrlResolver<GlobalScopeId>, count: usize) -> String {
        (0..count).map(|_| nodes.url(&GlobalScopeId)).collect()
    }

    #[test]
    fn service_stays_with_its_node_while_that_is_healthy() {
        let (nodes, _) = nodes();
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected, Outcome::Parked] {
            assert_eq!(next(&nodes, 2), "aa");
            nodes.report("1", "a", outcome);
        }
        // A failure of another node is no reason, either.
        nodes.report("1", "b", Outcome::NotSent);
        assert_eq!(next(&nodes, 2), "aa");
    }

    #[test]
    fn service_stays_with_the_node_that_replaced_a_failed_one() {
        for outcome in [Outcome::NotSent, Outcome::Ambiguous, Outcome::Refused] {
            let (nodes, clock) = nodes();
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 2), "bb", "{outcome}");
            nodes.report("1", "a", Outcome::Accepted);
            clock.advance(RETRY_AFTER);
            assert_eq!(next(&nodes, 2), "bb", "{outcome}");
            nodes.report("1", "b", Outcome::NotSent);
            assert_eq!(next(&nodes, 2), "cc", "{outcome}");
            nodes.report("1", "c", Outcome::NotSent);
            assert_eq!(next(&nodes, 2), "aa", "{outcome}");
        }
    }

    #[test]
    fn services_are_spread_over_the_nodes() {
        let nodes = NodeUrlResolver::new(["a", "b", "c"]).unwrap();
        let again = NodeUrlResolver::new(["a", "b", "c"]).unwrap();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for number in 0..300 {
            let scope: ServiceScopeId = format!("circuit::{number}").parse().unwrap();
            let url = nodes.url(&scope);
            assert_eq!((nodes.url(&scope), again.url(&scope)), (url.clone(), url.clone()));
            *counts.entry(url).or_default() += 1;
        }
        assert!(counts.len() == 3 && counts.values().all(|count| *count > 50), "{counts:?}");
    }

    #[test]
    fn unhealthy_node_is_tried_again_with_one_batch() {
        let (nodes, clock) = nodes();
        for node in ["c", "b", "a"] {
            nodes.report("1", node, Outcome::NotSent);
        }
        clock.advance(RETRY_AFTER);
        assert_eq!(next(&nodes, 3), "abc");
    }

    #[test]
    fn node_that_answers_is_healthy_again() {
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
            let (nodes, _) = nodes();
            nodes.report("1", "a", Outcome::Ambiguous);
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 1), "a", "{outcome}");
        }
    }

    #[test]
    fn if_all_are_unhealthy_the_longest_failed_is_used() {
        let (nodes, clock) = nodes();
        for node in ["b", "c", "a"] {
            nodes.report("1", node, Outcome::NotSent);
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(next(&nodes, 1), "b");
        nodes.report("1", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        assert_eq!(next(&nodes, 1), "c");
    }

    #[test]
    fn unhealthy_time_does_not_follow_the_time_of_day() {
        let (nodes, clock) = nodes();
        clock.set(Timestamp::default().plus(Duration::from_hours(1)));
        for node in ["a", "b"] {
            nodes.report("1", node, Outcome::NotSent);
        }
        clock.set(Timestamp::default());
        assert_eq!(next(&nodes, 1), "c");
        clock.set(Timestamp::default().plus(Duration::from_hours(2)));
        nodes.report("1", "c", Outcome::NotSent);
        clock.set(Timestamp::default());
        clock.advance(RETRY_AFTER);
        assert_eq!(next(&nodes, 2), "ca");
    }

    #[test]
    fn node_that_accepted_a_batch_is_remembered() {
        let (nodes, _) = nodes();
        nodes.report("1", "a", Outcome::NotSent);
        assert_eq!(nodes.node_of("1"), None);
        nodes.report("1", "b", Outcome::Accepted);
        nodes.report("1", "c", Outcome::Accepted);
        assert_eq!(nodes.node_of("1").as_deref(), Some("b"));
    }

    #[test]
    fn status_urls_begin_with_the_receiving_node() {
        let (nodes, clock) = nodes();
        let urls = |batch: &str| nodes.status_urls("global", batch).concat();
        assert_eq!(urls("1"), "abc");
        nodes.report("1", "b", Outcome::Accepted);
        assert_eq!(urls("1"), "bac");
        nodes.report("2", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        nodes.report("2", "a", Outcome::NotSent);
        assert_eq!((urls("1"), urls("2")), ("bca".to_owned(), "cba".to_owned()));
        // Status URLs do not change the node of a service.
        assert_eq!(next(&nodes, 1), "c");
        for node in ["a", "b"] {
            nodes.report("3", node, Outcome::Busy);
        }
        assert_eq!(urls("3"), "cab", "the node of the service comes first");
    }

    #[test]
    fn report_about_an_unknown_address_is_ignored() {
        let (nodes, _) = nodes();
        nodes.report("1", "elsewhere", Outcome::Accepted);
        assert_eq!(nodes.node_of("1"), None);
        assert_eq!(next(&nodes, 1), "a");
    }

    #[test]
    fn resolver_without_nodes_is_an_error() {
        let nodes = NodeUrlResolver::<GlobalScopeId>::new(Vec::<String>::new());
        assert_eq!(nodes.unwrap_err(), NoNodesError);
    }

    #[test]
    fn debug_output_hides_the_secrets_of_urls() {
        let nodes = NodeUrlResolver::<GlobalScopeId>::new(["http://u:secret@h/key"]).unwrap();
        assert_eq!(format!("{nodes:?}"), r#"{"http://h": None}"#);
    }
}
