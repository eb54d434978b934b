use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use grid_batch_core::ledger::LedgerIdentity;
use grid_batch_nodes::{Node, NodePool};
use grid_batch_support::lock;
use log::error;

use crate::LedgerMismatchError;

/// Whether the configured nodes belong to the ledger of the database. Clones share their state.
#[derive(Clone)]
pub struct LedgerCheck(Arc<CheckState>);

struct CheckState {
    /// The ledger of the settings, without what the nodes report.
    configured: LedgerIdentity,
    pool: NodePool,
    /// The ledger that a node has reported and that the database is bound to.
    confirmed: OnceLock<LedgerIdentity>,
    mismatch: OnceLock<LedgerMismatchError>,
    on_mismatch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl LedgerCheck {
    /// Creates the check. The nodes of this pool must confirm their ledger from now on. A submission waits for at most
    /// `answer_limit` until its node has done so.
    pub fn new(configured: LedgerIdentity, pool: NodePool, answer_limit: Duration) -> Self {
        pool.require_confirmation(answer_limit);
        let (confirmed, mismatch, on_mismatch) = Default::default();
        Self(Arc::new(CheckState { configured, pool, confirmed, mismatch, on_mismatch }))
    }

    /// The ledger of the settings.
    pub fn configured(&self) -> &LedgerIdentity {
        &self.0.configured
    }

    /// The pool of nodes, with what is known about each.
    pub fn pool(&self) -> &NodePool {
        &self.0.pool
    }

    /// The ledger that a node has reported and that the database is bound to.
    pub(crate) fn confirmed(&self) -> Option<&LedgerIdentity> {
        self.0.confirmed.get()
    }

    pub(crate) fn confirm(&self, ledger: LedgerIdentity) {
        self.0.confirmed.get_or_init(|| ledger);
    }

    /// Whether services may be claimed and their batches submitted.
    pub fn may_claim(&self) -> bool {
        self.confirmed().is_some() && self.mismatch().is_none()
    }

    /// Proof that the server would use another ledger than the one of the database.
    pub fn mismatch(&self) -> Option<&LedgerMismatchError> {
        self.0.mismatch.get()
    }

    /// Calls `stop` when a mismatch is found, or at once if one was found already.
    pub fn on_mismatch(&self, stop: impl FnOnce() + Send + 'static) {
        *lock(&self.0.on_mismatch) = Some(Box::new(stop));
        if self.mismatch().is_some() {
            self.call_back();
        }
    }

    pub(crate) fn found_mismatch(&self, mismatch: LedgerMismatchError) {
        // Writing a log line may take long, and nothing may be sent meanwhile.
        self.pool().close();
        let reason = mismatch.to_string();
        if self.0.mismatch.set(mismatch).is_ok() {
            error!(reason = reason.as_str(); "nothing is claimed or sent any more; the server must stop");
        }
        self.call_back();
    }

    fn call_back(&self) {
        if let Some(stop) = lock(&self.0.on_mismatch).take() {
            stop();
        }
    }

    /// Why services are not claimed; `None` if they are.
    pub fn problem(&self) -> Option<String> {
        if let Some(mismatch) = self.mismatch() {
            return Some(mismatch.to_string());
        }
        if self.may_claim() {
            return None;
        }
        let nodes: Vec<String> = self.pool().nodes().iter().map(Node::identity_problem).collect();
        Some(format!(
            "services are not claimed, because no node has confirmed which ledger it belongs to ({})",
            nodes.join("; ")
        ))
    }

    /// Whether every node has answered or failed to, or the server must stop.
    pub(crate) fn is_complete(&self) -> bool {
        self.mismatch().is_some()
            || self.pool().nodes().iter().all(|node| node.identity().checks() > 0)
    }
}

impl fmt::Debug for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerCheck").field("confirmed", &self.confirmed()).finish_non_exhaustive()
    }
}
