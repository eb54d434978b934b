use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use grid_batch_core::{Clock, LedgerIdentity, NodeOutage, NodeOutages, StatusUrlResolver};
use grid_batch_http::origin;
use grid_batch_support::redact_url;
use log::error;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::{
    LedgerMismatchError,
    node_state::{NodeAnswer, NodeState},
    waiting_services::WaitingServices,
};

/// Which of the configured nodes belong to the ledger of the database. Clones share their state.
#[derive(Clone)]
pub(in crate::server) struct LedgerCheck(pub(super) Arc<CheckState>);

pub(super) struct CheckState {
    pub(super) options: LedgerCheckOptions,
    pub(super) nodes: Vec<Node>,
    /// The ledger that a node has told and that the database is bound to.
    pub(super) confirmed: OnceLock<LedgerIdentity>,
    mismatch: OnceLock<LedgerMismatchError>,
    on_mismatch: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    pub(super) waiting: WaitingServices,
    /// The nodes of a service.
    resolver: OnceLock<Arc<dyn StatusUrlResolver>>,
    /// The names of the peers of a service.
    peers: HashMap<String, Vec<String>>,
    /// Sent after each answer of a node.
    pub(super) answers: watch::Sender<()>,
}

pub(super) struct Node {
    pub(super) url: String,
    /// Scheme, host and port of the URL.
    pub(super) name: String,
    state: Mutex<NodeState>,
    /// Asks the node at once.
    pub(super) wanted: Notify,
}

pub(in crate::server) struct LedgerCheckOptions {
    /// The ledger of the settings, without what the nodes tell.
    pub(in crate::server) configured: LedgerIdentity,
    /// All nodes.
    pub(in crate::server) urls: Vec<String>,
    /// The circuits' other nodes, each with a service. They are only asked whether they answer.
    pub(in crate::server) peers: Vec<(String, String)>,
    /// Which nodes and peers do not answer.
    pub(in crate::server) outages: NodeOutages,
    /// How long a submission waits until its node has told its ledger.
    pub(in crate::server) answer_limit: Duration,
    pub(in crate::server) clock: Arc<dyn Clock>,
}

impl LedgerCheck {
    pub(in crate::server) fn new(options: LedgerCheckOptions) -> Self {
        let mut urls = options.urls.clone();
        urls.sort_unstable();
        urls.dedup();
        let mut peers = HashMap::<String, Vec<String>>::new();
        for (service, url) in &options.peers {
            peers.entry(service.clone()).or_default().push(origin(url));
        }
        Self(Arc::new(CheckState {
            options,
            nodes: urls.into_iter().map(Node::new).collect(),
            confirmed: OnceLock::new(),
            mismatch: OnceLock::new(),
            on_mismatch: Mutex::new(None),
            waiting: WaitingServices::default(),
            resolver: OnceLock::new(),
            peers,
            answers: watch::Sender::new(()),
        }))
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

    /// Sets the nodes of each service.
    pub(in crate::server) fn set_resolver(&self, resolver: Arc<dyn StatusUrlResolver>) {
        // It is set once, when the ledger is composed.
        let _ = self.0.resolver.set(resolver);
    }

    /// The nodes of a batch, whether they have confirmed their ledger or not.
    pub(super) fn nodes_of(&self, service: &str, batch_id: &str) -> Vec<String> {
        let resolver = self.0.resolver.get();
        resolver.map(|resolver| resolver.status_urls(service, batch_id)).unwrap_or_default()
    }

    /// A batch of this service is at its nodes, or on its way.
    pub(super) fn expect_of(&self, service: &str) {
        self.names_of(service).iter().for_each(|name| self.0.options.outages.expect(name));
    }

    /// How many nodes there are, peers included.
    pub(in crate::server) fn node_count(&self) -> usize {
        self.0.options.outages.nodes().count()
    }

    /// For each node of another ledger, why it is not used.
    pub(in crate::server) fn other_ledgers(&self) -> Vec<String> {
        let mismatch = |node: &Node| node.lock().other_ledger().map(ToString::to_string);
        self.0.nodes.iter().filter_map(mismatch).collect()
    }

    /// Ends the server if every node belongs to another ledger.
    pub(super) fn check_all_others(&self) {
        let mut mismatches = Vec::new();
        for node in &self.0.nodes {
            let state = node.lock();
            let Some(mismatch) = state.other_ledger() else { return };
            mismatches.push(mismatch.clone());
        }
        mismatches.into_iter().take(1).for_each(|mismatch| self.found_mismatch(mismatch));
    }

    /// The nodes and peers that do not answer, and the nodes that do not tell their ledger.
    pub(in crate::server) fn outages(&self) -> Vec<NodeOutage> {
        let mut outages: Vec<_> =
            self.0.nodes.iter().filter_map(|node| self.outage(node)).collect();
        outages.dedup_by(|one, other| one.node == other.node);
        outages
    }

    /// Those on which batches of this service depend.
    pub(in crate::server) fn outages_of(&self, service: &str) -> Vec<NodeOutage> {
        let names = self.names_of(service);
        let nodes = names.iter().filter_map(|name| self.0.nodes.iter().find(|it| it.name == *name));
        nodes.filter_map(|node| self.outage(node)).collect()
    }

    /// The outage of a node, if it does not answer or does not tell its ledger.
    pub(super) fn outage(&self, node: &Node) -> Option<NodeOutage> {
        let outages = &self.0.options.outages;
        outages.outage(&node.name).or_else(|| {
            let state = node.lock();
            let (since, reason) = state.unconfirmed()?;
            outages.outage_since(&node.name, since, reason)
        })
    }

    fn names_of(&self, service: &str) -> Vec<String> {
        let nodes = self.nodes_of(service, "");
        let peers = self.0.peers.get(service).into_iter().flatten().cloned();
        let mut names: Vec<_> = nodes.iter().map(|url| origin(url)).chain(peers).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Why services are not claimed; `None` if they are.
    pub(in crate::server) fn problem(&self) -> Option<String> {
        if let Some(mismatch) = self.mismatch() {
            return Some(mismatch.to_string());
        }
        if self.may_claim() {
            return None;
        }
        let nodes: Vec<String> = self.0.nodes.iter().map(Node::problem).collect();
        Some(format!(
            "services are not claimed, because no node has confirmed which ledger it belongs to ({})",
            nodes.join("; ")
        ))
    }

    /// Whether every node was asked and has answered or failed, or the server must stop.
    pub(in crate::server) fn is_complete(&self) -> bool {
        self.mismatch().is_some() || self.0.nodes.iter().all(|node| node.lock().checks() > 0)
    }

    /// Whether this node has confirmed its ledger.
    pub(super) fn is_confirmed(&self, url: &str) -> bool {
        self.mismatch().is_none() && self.node(url).is_some_and(|node| node.lock().is_confirmed())
    }

    /// Succeeds if the node has confirmed its ledger within the last seconds; otherwise it is asked. The
    /// error is the reason why nothing may be sent to it.
    pub(super) async fn confirm_now(&self, url: &str) -> Result<(), String> {
        match self.node(url) {
            Some(node) if self.mismatch().is_none() && self.is_trusted(node) => Ok(()),
            Some(node) => self.ask_and_wait(node).await,
            None => Err("the node is not in the settings".to_owned()),
        }
    }

    async fn ask_and_wait(&self, node: &Node) -> Result<(), String> {
        let limit = self.0.options.answer_limit;
        let mut answers = self.0.answers.subscribe();
        let before = node.lock().checks();
        node.wanted.notify_one();
        let has_failed = || node.lock().checks() > before && !node.lock().is_confirmed();
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
        Err(format!("the node has not confirmed which ledger it belongs to: {}", node.problem()))
    }

    /// A request to this node ended without an answer. Another node may answer at its address from now
    /// on.
    pub(super) fn connection_failed(&self, url: &str) {
        if let Some(node) = self.node(url) {
            node.lock().connection_failed();
            node.wanted.notify_one();
        }
    }

    /// A connection to one of the nodes ended.
    pub(super) fn any_connection_failed(&self) {
        self.0.nodes.iter().for_each(|node| self.connection_failed(&node.url));
    }

    /// Why none of these nodes is used, if each has answered and not as a node of the ledger.
    pub(super) fn unusable(&self, urls: &[String]) -> Option<String> {
        let is_unusable = |node: &&Node| {
            matches!(node.lock().answer(), NodeAnswer::Unusable(_) | NodeAnswer::OtherLedger(_))
        };
        let problem = |url: &String| self.node(url).filter(is_unusable).map(Node::problem);
        let problems: Option<Vec<String>> = urls.iter().map(problem).collect();
        problems.map(|problems| problems.join("; "))
    }

    fn is_trusted(&self, node: &Node) -> bool {
        node.lock().is_trusted(self.0.options.clock.monotonic())
    }

    fn node(&self, url: &str) -> Option<&Node> {
        self.0.nodes.iter().find(|node| node.url == url)
    }
}

impl Node {
    fn new(url: String) -> Self {
        Self { name: origin(&url), url, state: Mutex::default(), wanted: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the node is not used, with its URL.
    fn problem(&self) -> String {
        let reason = self.lock().answer().problem().unwrap_or_else(|| "no answer yet".to_owned());
        format!("{}: {reason}", redact_url(&self.url))
    }
}

impl fmt::Debug for LedgerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerCheck")
            .field("confirmed", &self.0.confirmed.get())
            .finish_non_exhaustive()
    }
}
