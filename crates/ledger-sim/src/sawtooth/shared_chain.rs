use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{ItemId, Timestamp};
use grid_batch_protocol::VerifiedBatch;
use grid_batch_support::lock;

/// The batches that the nodes of one chain have committed, in order. Clones share the chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedChain(Arc<Mutex<ChainState>>);

#[derive(Debug, Default)]
struct ChainState {
    genesis: Option<ItemId>,
    nodes: usize,
    batches: Vec<SharedBatch>,
}

#[derive(Debug, Clone)]
struct SharedBatch {
    batch: VerifiedBatch,
    published_at: Timestamp,
    node: usize,
}

/// One node of a chain. It applies the blocks of other nodes later than they do.
#[derive(Debug)]
pub(super) struct ChainNode {
    chain: SharedChain,
    number: usize,
    lag: Duration,
    /// The number of batches of the chain that this node has applied or skipped.
    applied: usize,
}

impl SharedChain {
    /// The id of the chain's first block: that of its first node.
    pub(crate) fn genesis_or(&self, id: ItemId) -> ItemId {
        *lock(&self.0).genesis.get_or_insert(id)
    }

    /// A new node, which applies the blocks of others this long after they were published.
    pub(super) fn join(&self, lag: Duration) -> ChainNode {
        let mut state = lock(&self.0);
        let number = state.nodes;
        state.nodes += 1;
        ChainNode { chain: self.clone(), number, lag, applied: 0 }
    }
}

impl ChainNode {
    /// The number of other nodes, for whose blocks this one has to look.
    pub(super) fn count_peers(&self) -> usize {
        lock(&self.chain.0).nodes.saturating_sub(1)
    }

    /// Publishes a batch that this node has executed. Returns `false` if another node has published it.
    pub(super) fn publish(&self, batch: &VerifiedBatch, now: Timestamp) -> bool {
        let mut state = lock(&self.chain.0);
        let is_new = state.batches.iter().all(|other| other.batch.id() != batch.id());
        if is_new {
            let batch = batch.clone();
            state.batches.push(SharedBatch { batch, published_at: now, node: self.number });
        }
        is_new
    }

    /// Whether the chain has the batch, applied by this node or not.
    pub(super) fn has_published(&self, id: ItemId) -> bool {
        lock(&self.chain.0).batches.iter().any(|shared| shared.batch.id() == id)
    }

    /// Whether the chain has the transaction, applied by this node or not.
    pub(super) fn has_published_transaction(&self, id: ItemId) -> bool {
        let has_it = |batch: &VerifiedBatch| batch.transactions().iter().any(|t| t.id() == id);
        lock(&self.chain.0).batches.iter().any(|shared| has_it(&shared.batch))
    }

    /// Whether the condition holds for a batch of another node that this node has not applied yet.
    pub(super) fn has_unapplied(&self, condition: impl Fn(&VerifiedBatch) -> bool) -> bool {
        let state = lock(&self.chain.0);
        let later = state.batches.iter().skip(self.applied);
        later.filter(|other| other.node != self.number).any(|other| condition(&other.batch))
    }

    /// The next batch of another node, if it is time to apply it.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<(VerifiedBatch, Timestamp)> {
        let state = lock(&self.chain.0);
        while let Some(next) = state.batches.get(self.applied) {
            let due = next.published_at.plus(self.lag);
            if next.node != self.number && due > now {
                return None;
            }
            self.applied += 1;
            if next.node != self.number {
                return Some((next.batch.clone(), due));
            }
        }
        None
    }
}
