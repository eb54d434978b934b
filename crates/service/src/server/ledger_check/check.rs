use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use grid_batch_api::{LedgerReport, NodeReport};
use grid_batch_core::{LedgerIdentity, MonotonicTime, OutageKind, RecordedLedger};
use grid_batch_nodes::{Node, NodePool};
use grid_batch_support::{lock, redact_url};
use log::error;

use super::LedgerMismatchError;

/// Whether the configured nodes belong to the ledger of the database. Clones share their state.
#[derive(Clone)]
pub(in crate::server) struct LedgerCheck(Arc<CheckState>);

struct CheckState {
    /// The ledger of the settings, without what the nodes tell.
    configured: LedgerIdentity,
    pool: NodePool,
    /// The ledger that a node has told and that the database is bound to.
    confirmed: OnceLock<LedgerIdentity>,
    mismatch: OnceLock<LedgerMismatchError>,
    on_mismatch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl LedgerCheck {
    /// The nodes of this pool must confirm their ledger from now on. A submission waits for at most `answer_limit` until
    /// its node has.
    pub(in crate::server) fn new(
        configured: LedgerIdentity,
        pool: NodePool,
        answer_limit: Duration,
    ) -> Self {
        pool.require_confirmation(answer_limit);
        let (confirmed, mismatch, on_mismatch) = Default::default();
        Self(Arc::new(CheckState { configured, pool, confirmed, mismatch, on_mismatch }))
    }

    /// The ledger of the settings.
    pub(super) fn configured(&self) -> &LedgerIdentity {
        &self.0.configured
    }

    /// What is known of the nodes.
    pub(in crate::server) fn pool(&self) -> &NodePool {
        &self.0.pool
    }

    /// The ledger that a node has told and that the database is bound to.
    pub(super) fn confirmed(&self) -> Option<&LedgerIdentity> {
        self.0.confirmed.get()
    }

    pub(super) fn confirm(&self, ledger: LedgerIdentity) {
        self.0.confirmed.get_or_init(|| ledger);
    }

    /// Whether services may be claimed and their batches submitted.
    pub(in crate::server) fn may_claim(&self) -> bool {
        self.confirmed().is_some() && self.mismatch().is_none()
    }

    /// The proof that the server is about to use another ledger than the one of the database.
    pub(in crate::server) fn mismatch(&self) -> Option<&LedgerMismatchError> {
        self.0.mismatch.get()
    }

    /// Calls `stop` once a mismatch is found, at once if there is one already.
    pub(in crate::server) fn on_mismatch(&self, stop: impl FnOnce() + Send + 'static) {
        *lock(&self.0.on_mismatch) = Some(Box::new(stop));
        if self.mismatch().is_some() {
            self.call_back();
        }
    }

    pub(super) fn found_mismatch(&self, mismatch: LedgerMismatchError) {
        // A log line may take long to write, and nothing may be sent meanwhile.
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
    pub(in crate::server) fn problem(&self) -> Option<String> {
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

    /// Whether every node was asked and has answered or failed, or the server must stop.
    pub(super) fn is_complete(&self) -> bool {
        self.mismatch().is_some()
            || self.pool().nodes().iter().all(|node| node.identity().checks() > 0)
    }
}

/// What `/v1/ledgers` shows. It is read from memory.
impl LedgerCheck {
    /// The ledger that the database is bound to, or the one of the settings, and its nodes.
    pub(in crate::server) fn report(&self, recorded: Option<RecordedLedger>) -> LedgerReport {
        let now = self.pool().monotonic();
        let is_recorded = recorded.is_some();
        let configured = || self.configured().clone();
        let identity = recorded.map_or_else(configured, |recorded| recorded.identity);
        LedgerReport {
            kind: identity.kind,
            id: identity.id,
            name: identity.name,
            recorded: is_recorded,
            problem: self.problem(),
            nodes: self.pool().nodes().iter().map(|node| self.node_report(node, now)).collect(),
        }
    }

    fn node_report(&self, node: &Node, now: MonotonicTime) -> NodeReport {
        let outage = self.pool().outage(node);
        let unanswered = outage.as_ref().filter(|it| it.kind == OutageKind::Unanswered);
        let identity = node.identity();
        NodeReport {
            url: redact_url(node.url()),
            confirmed: identity.is_confirmed(),
            answering: self.pool().works(node),
            unanswered_seconds: unanswered.map(|outage| outage.lasted.as_secs_f64()),
            problem: match &outage {
                Some(outage) => Some(format!("{}: {}", outage.problem(), outage.reason)),
                None => identity.answer().problem().map(str::to_owned),
            },
            asked_seconds_ago: identity.time_since_asked(now).map(|ago| ago.as_secs_f64()),
            failed_connections: identity.failures(),
        }
    }
}

impl fmt::Debug for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerCheck").field("confirmed", &self.confirmed()).finish_non_exhaustive()
    }
}
