use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{
    Clock, Outcome, ScopeId, StatusUrlResolver, SystemClock, Timestamp, UrlResolver,
};
use grid_batch_support::redact_url;
use log::{info, warn};
use thiserror::Error;

use crate::resolver::{UrlHealth, node_memory::NodeMemory};

/// A resolver for several nodes of one ledger.
///
/// A node that fails is unhealthy and not used for a while. Then it is tried with one batch, and it
/// is healthy again when it answers. If all nodes are unhealthy, the one that failed longest ago is
/// used.
pub struct NodeUrlResolver<S> {
    choice: NodeChoice,
    retry_after: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<NodeStates>,
    scope: PhantomData<fn() -> S>,
}

/// Which of the healthy nodes is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// All in turn.
    #[default]
    RoundRobin,
    /// The first one, in the order of the configuration.
    FirstHealthy,
}

/// A resolver was created without nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the ledger has no nodes: give the address of at least one")]
pub struct NoNodesError;

struct NodeStates {
    nodes: Vec<Node>,
    /// The node that is used next by round robin.
    next: usize,
    memory: NodeMemory,
}

struct Node {
    url: String,
    /// When the node last failed, or was last tried after that. `None`: it is healthy.
    unhealthy_since: Option<Timestamp>,
}

impl<S> NodeUrlResolver<S> {
    /// Nodes at these addresses, used by round robin. An unhealthy node is tried again after 30 s,
    /// and the nodes of 100,000 batches are remembered.
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
            state: Mutex::new(NodeStates { nodes, next: 0, memory: NodeMemory::new(100_000) }),
            scope: PhantomData,
        })
    }

    /// Sets how a healthy node is chosen.
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

    fn url(&self, _: &S) -> String {
        let now = self.clock.now();
        let mut state = self.lock();
        let start = match self.choice {
            NodeChoice::RoundRobin => state.next,
            NodeChoice::FirstHealthy => 0,
        };
        let chosen = state.choose(start, now, self.retry_after);
        state.next = (chosen + 1) % state.nodes.len();
        let node = &mut state.nodes[chosen];
        // An unhealthy node is tried with one batch; the others wait for its answer.
        node.unhealthy_since = node.unhealthy_since.map(|_| now);
        node.url.clone()
    }
}

impl<S> StatusUrlResolver for NodeUrlResolver<S> {
    /// The node that received the batch, then the healthy nodes, then the others, first the one
    /// that failed longest ago. This does not affect the round robin.
    fn status_urls(&self, _: &str, batch_id: &str) -> Vec<String> {
        let state = self.lock();
        let received = state.memory.node_of(batch_id);
        let mut nodes: Vec<(usize, &Node)> = state.nodes.iter().enumerate().collect();
        nodes.sort_by_key(|(index, node)| (Some(*index) != received, node.unhealthy_since));
        nodes.into_iter().map(|(_, node)| node.url.clone()).collect()
    }
}

impl NodeStates {
    fn choose(&self, start: usize, now: Timestamp, retry_after: Duration) -> usize {
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
        let now = self.clock.now();
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
        Outcome::Accepted | Outcome::Busy | Outcome::Parked | Outcome::Rejected => false,
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
    use grid_batch_core::{GlobalScopeId, ManualClock};

    use super::*;

    const RETRY_AFTER: Duration = Duration::from_secs(30);

    fn nodes(choice: NodeChoice) -> (NodeUrlResolver<GlobalScopeId>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let nodes = NodeUrlResolver::new(["a", "b", "c"])
            .unwrap()
            .with_choice(choice)
            .with_retry_after(RETRY_AFTER)
            .with_memory(2)
            .with_clock(Arc::<ManualClock>::clone(&clock));
        (nodes, clock)
    }

    fn next(nodes: &NodeUrlResolver<GlobalScopeId>, count: usize) -> String {
        (0..count).map(|_| nodes.url(&GlobalScopeId)).collect()
    }

    #[test]
    fn round_robin_uses_nodes_in_turn() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        assert_eq!(next(&nodes, 5), "abcab");
    }

    #[test]
    fn first_healthy_uses_one_node() {
        let (nodes, _) = nodes(NodeChoice::FirstHealthy);
        assert_eq!(next(&nodes, 2), "aa");
        nodes.report("1", "a", Outcome::NotSent);
        assert_eq!(next(&nodes, 2), "bb");
    }

    #[test]
    fn unhealthy_node_is_tried_again_with_one_batch() {
        for outcome in [Outcome::NotSent, Outcome::Ambiguous, Outcome::Refused] {
            let (nodes, clock) = nodes(NodeChoice::RoundRobin);
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 4), "bcbc");
            clock.advance(RETRY_AFTER);
            assert_eq!(next(&nodes, 4), "abcb", "{outcome}");
        }
    }

    #[test]
    fn node_that_answers_is_healthy_again() {
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
            let (nodes, _) = nodes(NodeChoice::FirstHealthy);
            nodes.report("1", "a", Outcome::Ambiguous);
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 1), "a", "{outcome}");
        }
    }

    #[test]
    fn if_all_are_unhealthy_the_longest_failed_is_used() {
        let (nodes, clock) = nodes(NodeChoice::RoundRobin);
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
    fn clock_that_goes_back_does_not_block_nodes() {
        let (nodes, clock) = nodes(NodeChoice::RoundRobin);
        clock.advance(RETRY_AFTER);
        for node in ["a", "b", "c"] {
            nodes.report("1", node, Outcome::NotSent);
        }
        clock.set(Timestamp::from_micros(0));
        assert_eq!(next(&nodes, 1).len(), 1);
    }

    #[test]
    fn node_that_accepted_a_batch_is_remembered() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        nodes.report("1", "a", Outcome::NotSent);
        assert_eq!(nodes.node_of("1"), None);
        nodes.report("1", "b", Outcome::Accepted);
        nodes.report("1", "c", Outcome::Accepted);
        assert_eq!(nodes.node_of("1").as_deref(), Some("b"));
    }

    #[test]
    fn status_urls_begin_with_the_receiving_node() {
        let (nodes, clock) = nodes(NodeChoice::RoundRobin);
        let urls = |batch: &str| nodes.status_urls("any", batch).concat();
        assert_eq!(urls("1"), "abc");
        nodes.report("1", "b", Outcome::Accepted);
        assert_eq!(urls("1"), "bac");
        nodes.report("2", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        nodes.report("2", "a", Outcome::NotSent);
        assert_eq!((urls("1"), urls("2")), ("bca".to_owned(), "cba".to_owned()));
        // Status URLs do not affect the round robin.
        assert_eq!(next(&nodes, 1), "c");
    }

    #[test]
    fn report_about_an_unknown_address_is_ignored() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        nodes.report("1", "elsewhere", Outcome::Accepted);
        assert_eq!(nodes.node_of("1"), None);
        assert_eq!(next(&nodes, 3), "abc");
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
