//! The state of services that the nodes of a circuit share.
//!
//! Each node has its own queue and its own statuses. A batch is proposed to the other nodes after the
//! node that received it has executed it, one proposal at a time, and is committed if all nodes are present during the
//! whole vote and agree about the state.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use grid_batch_core::{ItemId, ServiceScopeId, Timestamp};
use grid_batch_protocol::VerifiedBatch;
use grid_batch_support::lock;

use super::state_root::StateRoot;

/// The services of a node, as other nodes may join them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Circuits(HashMap<ServiceScopeId, SharedService>);

impl Circuits {
    pub(crate) fn find(&self, id: &ServiceScopeId) -> Option<SharedService> {
        self.0.get(id).cloned()
    }

    /// Makes the service with this id another node's view of a shared one.
    pub(crate) fn insert(&mut self, id: ServiceScopeId, service: SharedService) {
        self.0.insert(id, service);
    }

    /// The service with this id. It has no other nodes unless it was inserted.
    pub(crate) fn find_or_create(&mut self, id: &ServiceScopeId) -> SharedService {
        self.find(id).unwrap_or_else(|| {
            let service = SharedService::default();
            self.insert(id.clone(), service.clone());
            service
        })
    }
}

/// How often a node has joined a service of another one.
static JOINED: AtomicU64 = AtomicU64::new(0);

/// Changes when a node joins a service of another one.
pub(super) fn joined() -> u64 {
    JOINED.load(Relaxed)
}

/// A service as the nodes of its circuit share it. Clones share the service.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedService(Arc<Mutex<SharedState>>);

#[derive(Debug, Default)]
struct SharedState {
    nodes: Vec<NodeState>,
    turn: Option<Turn>,
    /// When the last turn ended.
    free_since: Option<Timestamp>,
    log: Vec<LogEntry>,
    /// Batches whose node was stopped while they were voted on.
    left_behind: HashSet<ItemId>,
}

#[derive(Debug)]
struct NodeState {
    is_up: bool,
    is_frozen: bool,
    root: StateRoot,
    /// Proposals before this position of the log are unknown to the node, because it has restarted.
    proposals_from: usize,
}

/// The one node whose batch is executed or voted on.
#[derive(Debug)]
struct Turn {
    node: usize,
    proposal: Option<VerifiedBatch>,
    /// A vote is missing, so the proposal will be given up.
    is_interrupted: bool,
    is_committed: bool,
}

#[derive(Debug)]
struct LogEntry {
    node: usize,
    news: PeerUpdate,
    /// A node that was stopped before it could apply this commit.
    missed_by: Option<usize>,
}

/// A message from another node.
#[derive(Debug, Clone)]
pub(super) enum PeerUpdate {
    Proposed(VerifiedBatch, Timestamp),
    Committed(VerifiedBatch, Timestamp),
}

/// One node's view of a shared service.
#[derive(Debug)]
pub(super) struct CircuitNode {
    service: SharedService,
    number: usize,
    /// The position in the log up to which this node has followed it.
    seen: usize,
}

impl SharedService {
    /// A new node, whose state has this root.
    pub(super) fn join(&self, root: StateRoot) -> CircuitNode {
        let mut state = lock(&self.0);
        let (number, seen) = (state.nodes.len(), state.log.len());
        state.nodes.push(NodeState { is_up: true, is_frozen: false, root, proposals_from: seen });
        JOINED.fetch_add(u64::from(number > 0), Relaxed);
        CircuitNode { service: self.clone(), number, seen }
    }
}

impl SharedState {
    fn can_commit(&self) -> bool {
        let is_interrupted = self.turn.as_ref().is_none_or(|turn| turn.is_interrupted);
        let agree = self.nodes.windows(2).all(|pair| pair[0].root == pair[1].root);
        !is_interrupted
            && agree
            && self.nodes.iter().all(|node| node.is_up)
            && !self.waits_for_frozen_node()
    }

    fn waits_for_frozen_node(&self) -> bool {
        let Some(Turn { node: proposer, is_interrupted: false, .. }) = self.turn else {
            return false;
        };
        let mut others = self.nodes.iter().enumerate().filter(|(number, _)| *number != proposer);
        others.any(|(_, node)| node.is_frozen)
    }

    /// Commits the batch of the turn at all nodes but this one.
    fn commit(&mut self, time: Timestamp, missed_by: Option<usize>) {
        let Some(turn) = &mut self.turn else { return };
        let Some(batch) = &turn.proposal else { return };
        turn.is_committed = true;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if missed_by != Some(number) {
                apply(&mut node.root, batch);
            }
        }
        let news = PeerUpdate::Committed(batch.clone(), time);
        self.log.push(LogEntry { node: turn.node, news, missed_by });
    }
}

fn apply(root: &mut StateRoot, batch: &VerifiedBatch) {
    batch.transactions().iter().for_each(|transaction| root.apply(transaction.id()));
}

impl CircuitNode {
    pub(super) fn has_peers(&self) -> bool {
        lock(&self.service.0).nodes.len() > 1
    }

    /// When the last batch of any node was finished.
    pub(super) fn free_since(&self) -> Timestamp {
        lock(&self.service.0).free_since.unwrap_or(Timestamp::from_micros(i64::MIN))
    }

    pub(super) fn root(&self) -> StateRoot {
        lock(&self.service.0).nodes[self.number].root
    }

    /// Starts to execute a batch. Returns `false` while another node's batch is under way.
    pub(super) fn take_turn(&self) -> bool {
        let mut state = lock(&self.service.0);
        let turn = || Turn {
            node: self.number,
            proposal: None,
            is_interrupted: false,
            is_committed: false,
        };
        state.turn.get_or_insert_with(turn).node == self.number
    }

    pub(super) fn end_turn(&self, now: Timestamp) {
        let mut state = lock(&self.service.0);
        (state.turn, state.free_since) = (None, Some(now));
    }

    /// Proposes an executed batch to the other nodes.
    pub(super) fn propose(&self, batch: &VerifiedBatch, now: Timestamp) {
        let mut state = lock(&self.service.0);
        if let Some(turn) = &mut state.turn {
            turn.proposal = Some(batch.clone());
        }
        let news = PeerUpdate::Proposed(batch.clone(), now);
        state.log.push(LogEntry { node: self.number, news, missed_by: None });
    }

    /// Drops the batch of the turn, which stays Valid until the turn ends.
    pub(super) fn drop_proposal(&self) {
        if let Some(turn) = &mut lock(&self.service.0).turn {
            turn.is_interrupted = true;
        }
    }

    /// Commits the proposed batch. Returns `false` if it is dropped.
    pub(super) fn commit(&self, now: Timestamp) -> bool {
        let mut state = lock(&self.service.0);
        if state.turn.as_ref().is_some_and(|turn| turn.is_committed) {
            return true;
        }
        let can_commit = state.can_commit();
        if can_commit {
            state.commit(now, None);
        }
        can_commit
    }

    /// Changes the state of this node alone.
    pub(super) fn apply_alone(&self, batch: &VerifiedBatch) {
        apply(&mut lock(&self.service.0).nodes[self.number].root, batch);
    }

    /// Changes the state of this node alone as the batch that is voted on would.
    pub(super) fn apply_proposal_alone(&self) {
        let mut state = lock(&self.service.0);
        if let Some(batch) = state.turn.as_ref().and_then(|turn| turn.proposal.clone()) {
            apply(&mut state.nodes[self.number].root, &batch);
        }
    }

    /// Takes the state of the circuit's first other node.
    pub(super) fn restore_state(&self) {
        let mut state = lock(&self.service.0);
        let others = state.nodes.iter().enumerate().filter(|(number, _)| *number != self.number);
        if let Some(root) = others.map(|(_, node)| node.root).next() {
            state.nodes[self.number].root = root;
        }
    }

    /// Whether a batch of any node is voted on.
    pub(super) fn is_voting(&self) -> bool {
        lock(&self.service.0).turn.as_ref().is_some_and(|turn| turn.proposal.is_some())
    }

    /// Whether this node was stopped while the batch was voted on. It is reported once.
    pub(super) fn take_leftover_proposal(&self, id: &ItemId) -> bool {
        lock(&self.service.0).left_behind.remove(id)
    }

    /// The next message of another node, if there is one.
    pub(super) fn news(&self) -> Option<Option<PeerUpdate>> {
        let state = lock(&self.service.0);
        let entry = state.log.get(self.seen)?;
        let is_unknown = matches!(entry.news, PeerUpdate::Proposed(..))
            && self.seen < state.nodes[self.number].proposals_from;
        let is_own = entry.node == self.number;
        let is_missed = entry.missed_by == Some(self.number);
        Some((!is_own && !is_missed && !is_unknown).then(|| entry.news.clone()))
    }

    pub(super) fn follow(&mut self) {
        self.seen += 1;
    }

    /// Stops the node. Its own batch is lost, and one of another node gets no vote. With
    /// `misses_commit`, the other nodes commit the batch nevertheless.
    pub(super) fn stop(&self, now: Timestamp, misses_commit: bool) {
        let mut state = lock(&self.service.0);
        if misses_commit && state.can_commit() {
            state.commit(now, Some(self.number));
        }
        state.nodes[self.number].is_up = false;
        match state.turn.take_if(|turn| turn.node == self.number) {
            Some(turn) => {
                state.free_since = Some(now);
                state.left_behind.extend(turn.proposal.map(|batch| batch.id()));
            }
            None => {
                if let Some(turn) = &mut state.turn {
                    turn.is_interrupted = true;
                }
            }
        }
    }

    /// Whether only the vote of a frozen node is missing.
    pub(super) fn waits_for_frozen_node(&self) -> bool {
        lock(&self.service.0).waits_for_frozen_node()
    }

    pub(super) fn set_frozen(&self, is_frozen: bool) {
        lock(&self.service.0).nodes[self.number].is_frozen = is_frozen;
    }

    pub(super) fn start_again(&self) {
        let mut state = lock(&self.service.0);
        let proposals_from = state.log.len();
        let node = &mut state.nodes[self.number];
        (node.is_up, node.proposals_from) = (true, proposals_from);
    }
}

/// A node that is gone does not vote any more.
impl Drop for CircuitNode {
    fn drop(&mut self) {
        let now = self.free_since();
        self.stop(now, false);
    }
}
