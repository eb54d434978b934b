use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{
    Clock, Outcome, ScopeId, StatusUrlResolver, SystemClock, Timestamp, UrlResolver,
};
use log::{info, warn};
use thiserror::Error;

use crate::{
    redact::host,
    resolver::{UrlHealth, memory::Memory},
};

/// Several nodes of one ledger. One that fails is set aside for a while, and then tried again with
/// a single batch; it is back when it answers.
///
/// If all are aside, the one is used that has been aside longest.
pub struct NodeUrlResolver<S> {
    choice: NodeChoice,
    aside_for: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    scope: PhantomData<fn() -> S>,
}

/// Which of the nodes that are not aside is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodeChoice {
    /// All in turn.
    #[default]
    RoundRobin,
    /// The first in the order of configuration.
    FirstHealthy,
}

/// A ledger was to have nodes, and none was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the ledger has no nodes; it needs the address of at least one")]
pub struct NoNodes;

struct State {
    nodes: Vec<Node>,
    /// Whose turn it is.
    turn: usize,
    memory: Memory,
}

struct Node {
    url: String,
    /// Since it last failed, or since it was last tried after that.
    aside_since: Option<Timestamp>,
}

impl<S> NodeUrlResolver<S> {
    /// Nodes at these addresses, used in turn, aside for half a minute; 100,000 batches are
    /// remembered.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, NoNodes> {
        let node = |url| Node { url, aside_since: None };
        let nodes: Vec<Node> = urls.into_iter().map(Into::into).map(node).collect();
        if nodes.is_empty() {
            return Err(NoNodes);
        }
        Ok(Self {
            choice: NodeChoice::default(),
            aside_for: Duration::from_secs(30),
            clock: Arc::new(SystemClock),
            state: Mutex::new(State { nodes, turn: 0, memory: Memory::new(100_000) }),
            scope: PhantomData,
        })
    }

    /// Chooses like this.
    #[must_use]
    pub fn with_choice(self, choice: NodeChoice) -> Self {
        Self { choice, ..self }
    }

    /// Sets a node that fails aside for so long.
    #[must_use]
    pub fn with_aside_for(self, aside_for: Duration) -> Self {
        Self { aside_for, ..self }
    }

    /// Remembers the nodes of so many batches.
    #[must_use]
    pub fn with_memory(self, batches: usize) -> Self {
        self.lock().memory = Memory::new(batches);
        self
    }

    /// Knows the time from here.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The address of the node that took this batch first, as far as it is remembered: it is the
    /// one to ask for the batch's status. Where no node certainly took it, the first that may have.
    pub fn node_of(&self, batch_header: &str) -> Option<String> {
        let state = self.lock();
        let node = state.memory.node_of(batch_header)?;
        state.nodes.get(node).map(|node| node.url.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: ScopeId> UrlResolver for NodeUrlResolver<S> {
    type Id = S;

    fn url(&self, _: &S) -> String {
        let now = self.clock.now();
        let mut state = self.lock();
        let start = match self.choice {
            NodeChoice::RoundRobin => state.turn,
            NodeChoice::FirstHealthy => 0,
        };
        let chosen = state.choose(start, now, self.aside_for);
        state.turn = (chosen + 1) % state.nodes.len();
        let node = &mut state.nodes[chosen];
        // Until it answers, the others go on waiting for it.
        node.aside_since = node.aside_since.map(|_| now);
        node.url.clone()
    }
}

impl<S> StatusUrlResolver for NodeUrlResolver<S> {
    /// The node that took the batch, then those that are well, then those that have been aside
    /// longest. It is nobody's turn.
    fn status_urls(&self, _: &str, batch_id: &str) -> Vec<String> {
        let state = self.lock();
        let took = state.memory.node_of(batch_id);
        let mut nodes: Vec<(usize, &Node)> = state.nodes.iter().enumerate().collect();
        nodes.sort_by_key(|(index, node)| (Some(*index) != took, node.aside_since));
        nodes.into_iter().map(|(_, node)| node.url.clone()).collect()
    }
}

impl State {
    fn choose(&self, start: usize, now: Timestamp, aside_for: Duration) -> usize {
        let count = self.nodes.len();
        let may_be_used = |node: &usize| match self.nodes[*node].aside_since {
            None => true,
            Some(since) => now.since(since) >= aside_for,
        };
        let longest_aside = || (0..count).min_by_key(|node| self.nodes[*node].aside_since);
        let in_turn = (start..start + count).map(|node| node % count);
        in_turn.into_iter().find(may_be_used).or_else(longest_aside).unwrap_or(0)
    }
}

impl<S: ScopeId> UrlHealth for NodeUrlResolver<S> {
    fn report(&self, batch_header: &str, url: &str, outcome: Outcome) {
        let now = self.clock.now();
        let mut state = self.lock();
        let Some(index) = state.nodes.iter().position(|node| node.url == url) else { return };
        let node = &mut state.nodes[index];
        let was_aside = node.aside_since.is_some();
        let fails = is_failure(outcome);
        node.aside_since = fails.then_some(now);
        if outcome == Outcome::Accepted || outcome == Outcome::Ambiguous {
            state.memory.remember(batch_header, index, outcome == Outcome::Accepted);
        }
        drop(state);
        match (was_aside, fails) {
            (false, true) => warn!(node:% = host(url), outcome:% = outcome; "a node is set aside"),
            (true, false) => info!(node:% = host(url); "a node is back"),
            _ => {}
        }
    }
}

/// Whether another node might have done better.
fn is_failure(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NotSent | Outcome::Ambiguous | Outcome::Refused => true,
        Outcome::Accepted | Outcome::Busy | Outcome::Parked | Outcome::Rejected => false,
    }
}

impl<S> fmt::Debug for NodeUrlResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let nodes = state.nodes.iter().map(|node| (host(&node.url), node.aside_since));
        f.debug_map().entries(nodes).finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{GlobalScopeId, ManualClock};

    use super::*;

    const ASIDE: Duration = Duration::from_secs(30);

    fn nodes(choice: NodeChoice) -> (NodeUrlResolver<GlobalScopeId>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let nodes = NodeUrlResolver::new(["a", "b", "c"])
            .unwrap()
            .with_choice(choice)
            .with_aside_for(ASIDE)
            .with_memory(2)
            .with_clock(Arc::<ManualClock>::clone(&clock));
        (nodes, clock)
    }

    fn next(nodes: &NodeUrlResolver<GlobalScopeId>, count: usize) -> String {
        (0..count).map(|_| nodes.url(&GlobalScopeId)).collect()
    }

    #[test]
    fn nodes_are_used_in_turn() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        assert_eq!(next(&nodes, 5), "abcab");
    }

    #[test]
    fn the_first_healthy_node_is_used_alone() {
        let (nodes, _) = nodes(NodeChoice::FirstHealthy);
        assert_eq!(next(&nodes, 2), "aa");
        nodes.report("1", "a", Outcome::NotSent);
        assert_eq!(next(&nodes, 2), "bb");
    }

    #[test]
    fn a_node_that_fails_is_set_aside_and_tried_again_once() {
        for outcome in [Outcome::NotSent, Outcome::Ambiguous, Outcome::Refused] {
            let (nodes, clock) = nodes(NodeChoice::RoundRobin);
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 4), "bcbc");
            clock.advance(ASIDE);
            assert_eq!(next(&nodes, 4), "abcb", "{outcome}");
        }
    }

    #[test]
    fn a_node_that_answers_is_back() {
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
            let (nodes, _) = nodes(NodeChoice::FirstHealthy);
            nodes.report("1", "a", Outcome::Ambiguous);
            nodes.report("1", "a", outcome);
            assert_eq!(next(&nodes, 1), "a", "{outcome}");
        }
    }

    #[test]
    fn when_all_are_aside_the_one_aside_longest_is_used() {
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
    fn a_clock_that_goes_back_keeps_no_node_from_being_used() {
        let (nodes, clock) = nodes(NodeChoice::RoundRobin);
        clock.advance(ASIDE);
        for node in ["a", "b", "c"] {
            nodes.report("1", node, Outcome::NotSent);
        }
        clock.set(Timestamp::from_micros(0));
        assert_eq!(next(&nodes, 1).len(), 1);
    }

    #[test]
    fn the_node_that_took_a_batch_is_remembered() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        nodes.report("1", "a", Outcome::NotSent);
        assert_eq!(nodes.node_of("1"), None);
        nodes.report("1", "b", Outcome::Accepted);
        nodes.report("1", "c", Outcome::Accepted);
        assert_eq!(nodes.node_of("1").as_deref(), Some("b"));
    }

    #[test]
    fn the_status_of_a_batch_is_asked_of_the_node_that_took_it_then_of_the_healthy_ones() {
        let (nodes, clock) = nodes(NodeChoice::RoundRobin);
        let asked = |batch: &str| nodes.status_urls("any", batch).concat();
        assert_eq!(asked("1"), "abc");
        nodes.report("1", "b", Outcome::Accepted);
        assert_eq!(asked("1"), "bac");
        nodes.report("2", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        nodes.report("2", "a", Outcome::NotSent);
        assert_eq!((asked("1"), asked("2")), ("bca".to_owned(), "cba".to_owned()));
        // Asking is no sending: the turn goes on where it was.
        assert_eq!(next(&nodes, 1), "c");
    }

    #[test]
    fn a_report_about_an_unknown_address_changes_nothing() {
        let (nodes, _) = nodes(NodeChoice::RoundRobin);
        nodes.report("1", "elsewhere", Outcome::Accepted);
        assert_eq!(nodes.node_of("1"), None);
        assert_eq!(next(&nodes, 3), "abc");
    }

    #[test]
    fn a_ledger_without_nodes_is_an_error() {
        let nodes = NodeUrlResolver::<GlobalScopeId>::new(Vec::<String>::new());
        assert_eq!(nodes.unwrap_err(), NoNodes);
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        let nodes = NodeUrlResolver::<GlobalScopeId>::new(["http://u:secret@h/key"]).unwrap();
        assert_eq!(format!("{nodes:?}"), r#"{"http://h": None}"#);
    }
}
