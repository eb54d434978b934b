use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use grid_batch_core::{Clock, LedgerIdentity};
use grid_batch_nodes::{IdentityAnswer, Node, NodePool};
use grid_batch_support::redact_url;
use log::error;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{LedgerMismatchError, waiting_services::WaitingServices};

/// Which of the configured nodes belong to the ledger of the database. Clones share their state.
#[derive(Clone)]
pub(in crate::server) struct LedgerCheck(pub(super) Arc<CheckState>);

pub(super) struct CheckState {
    pub(super) options: LedgerCheckOptions,
    /// Asks the node at this URL at once.
    pub(super) wanted: HashMap<String, Notify>,
    /// The ledger that a node has told and that the database is bound to.
    pub(super) confirmed: OnceLock<LedgerIdentity>,
    mismatch: OnceLock<LedgerMismatchError>,
    on_mismatch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    pub(super) waiting: WaitingServices,
    /// Sent after each answer of a node.
    pub(super) answers: watch::Sender<()>,
}

pub(in crate::server) struct LedgerCheckOptions {
    /// The ledger of the settings, without what the nodes tell.
    pub(in crate::server) configured: LedgerIdentity,
    pub(in crate::server) pool: NodePool,
    /// How long a submission waits until its node has told its ledger.
    pub(in crate::server) answer_limit: Duration,
    pub(in crate::server) clock: Arc<dyn Clock>,
}

impl LedgerCheck {
    pub(in crate::server) fn new(options: LedgerCheckOptions) -> Self {
        let nodes = options.pool.nodes().iter();
        Self(Arc::new(CheckState {
            wanted: nodes.map(|node| (node.url().to_owned(), Notify::new())).collect(),
            options,
            confirmed: OnceLock::new(),
            mismatch: OnceLock::new(),
            on_mismatch: Mutex::new(None),
            waiting: WaitingServices::default(),
            answers: watch::Sender::new(()),
        }))
    }

    /// What is known of the nodes.
    pub(in crate::server) fn pool(&self) -> &NodePool {
        &self.0.options.pool
    }

    /// Whether services may be claimed and their batches submitted.
    pub(in crate::server) fn may_claim(&self) -> bool {
        self.0.confirmed.get().is_some() && self.mismatch().is_none()
    }

    /// The proof that the server is about to use another ledger than the one of the database.
    pub(in crate::server) fn mismatch(&self) -> Option<&LedgerMismatchError> {
        self.0.mismatch.get()
    }

    /// Calls `stop` once a mismatch is found, at once if there is one already.
    pub(in crate::server) fn on_mismatch(&self, stop: impl FnOnce() + Send + 'static) {
        *self.lock_callback() = Some(Box::new(stop));
        if self.mismatch().is_some() {
            self.call_back();
        }
    }

    /// Calls `poll` for each service whose statuses could not be read, when a node is back that was not
    /// used.
    pub(in crate::server) fn on_return(&self, poll: impl Fn(&str) + Send + 'static) {
        self.0.waiting.on_return(poll);
    }

    pub(super) fn found_mismatch(&self, mismatch: LedgerMismatchError) {
        self.pool().close();
        let reason = mismatch.to_string();
        if self.0.mismatch.set(mismatch).is_ok() {
            error!(reason = reason.as_str(); "nothing is claimed or sent any more; the server must stop");
        }
        self.0.answers.send_replace(());
        self.call_back();
    }

    fn call_back(&self) {
        if let Some(stop) = self.lock_callback().take() {
            stop();
        }
    }

    fn lock_callback(&self) -> MutexGuard<'_, Option<Box<dyn FnOnce() + Send>>> {
        self.0.on_mismatch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For each node of another ledger, why it is not used.
    pub(in crate::server) fn other_ledgers(&self) -> Vec<String> {
        let other = |node: &Node| match node.identity().answer() {
            IdentityAnswer::OtherLedger(mismatch) => Some(mismatch.clone()),
            _ => None,
        };
        self.pool().nodes().iter().filter_map(other).collect()
    }

    /// Why services are not claimed; `None` if they are.
    pub(in crate::server) fn problem(&self) -> Option<String> {
        if let Some(mismatch) = self.mismatch() {
            return Some(mismatch.to_string());
        }
        if self.may_claim() {
            return None;
        }
        let nodes: Vec<String> = self.pool().nodes().iter().map(problem).collect();
        Some(format!(
            "services are not claimed, because no node has confirmed which ledger it belongs to ({})",
            nodes.join("; ")
        ))
    }

    /// Whether every node was asked and has answered or failed, or the server must stop.
    pub(in crate::server) fn is_complete(&self) -> bool {
        self.mismatch().is_some()
            || self.pool().nodes().iter().all(|node| node.identity().checks() > 0)
    }

    /// Succeeds if the node has confirmed its ledger within the last seconds; otherwise it is asked. The
    /// error is the reason why nothing may be sent to it.
    pub(super) async fn confirm_now(&self, url: &str) -> Result<(), String> {
        match self.pool().node(url) {
            Some(node) if self.mismatch().is_none() && self.is_trusted(node) => Ok(()),
            Some(node) => self.ask_and_wait(node).await,
            None => Err("the node is not in the settings".to_owned()),
        }
    }

    async fn ask_and_wait(&self, node: &Node) -> Result<(), String> {
        let limit = self.0.options.answer_limit;
        let mut answers = self.0.answers.subscribe();
        let before = node.identity().checks();
        self.ask_now(node);
        let has_failed = || node.identity().checks() > before && !node.is_confirmed();
        let is_answered =
            |_: &()| self.mismatch().is_some() || self.is_trusted(node) || has_failed();
        // Without an answer in time, the node is not trusted.
        let _ = timeout(limit, answers.wait_for(is_answered)).await;
        if self.mismatch().is_some() {
            return Err("the nodes belong to another ledger than the database".to_owned());
        }
        if self.is_trusted(node) {
            return Ok(());
        }
        Err(format!("the node has not confirmed which ledger it belongs to: {}", problem(node)))
    }

    /// A request to this node ended without an answer. Another node may answer at its address from now
    /// on.
    pub(super) fn connection_failed(&self, url: &str) {
        if let Some(node) = self.pool().node(url) {
            node.connection_failed();
            self.ask_now(node);
        }
    }

    fn ask_now(&self, node: &Node) {
        if let Some(wanted) = self.0.wanted.get(node.url()) {
            wanted.notify_one();
        }
    }

    /// A connection to one of the nodes ended.
    pub(super) fn any_connection_failed(&self) {
        self.pool().nodes().iter().for_each(|node| self.connection_failed(node.url()));
    }

    /// Why none of these nodes is used, if each has answered and not as a node of the ledger.
    pub(super) fn unusable(&self, urls: &[String]) -> Option<String> {
        let is_unusable = |node: &&Node| {
            let identity = node.identity();
            matches!(
                identity.answer(),
                IdentityAnswer::Unusable(_) | IdentityAnswer::OtherLedger(_)
            )
        };
        let problem = |url: &String| self.pool().node(url).filter(is_unusable).map(problem);
        let problems: Option<Vec<String>> = urls.iter().map(problem).collect();
        problems.map(|problems| problems.join("; "))
    }

    fn is_trusted(&self, node: &Node) -> bool {
        node.identity().is_trusted(self.0.options.clock.monotonic())
    }
}

/// Why the node is not used, with its URL.
fn problem(node: &Node) -> String {
    let identity = node.identity();
    let reason = identity.answer().problem().unwrap_or("no answer yet");
    format!("{}: {reason}", redact_url(node.url()))
}

impl fmt::Debug for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerCheck")
            .field("confirmed", &self.0.confirmed.get())
            .finish_non_exhaustive()
    }
}
