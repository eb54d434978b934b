use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{BatchFormat, StatusReport};
use grid_batch_core::evidence::{EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{
    CommitHistory, ForwardedRequest, ForwardedResponse, ForwardedSocket, KeyRefusal, Ledger,
    LedgerEventStream, LedgerFacts, LedgerKey, PassThroughError, SocketMessages, Submission,
    SubmissionAnswer,
};
use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{BatchResult, ItemId, ScopeId, ScopeIdError, ServiceId, ServiceScopeId};
use grid_batch_http::{HttpClient, HttpRequests};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_protocol::{CylinderToken, TransactFormat};

use crate::{
    NewBatchRules, ScabbardError, ScabbardOptions,
    context::ScabbardContext,
    facts::facts,
    pass_through::{is_read, is_socket},
};

/// The Scabbard services of one Splinter network.
///
/// Clones share connections and what they have observed; a new `Scabbard` starts without observations.
#[derive(Clone)]
pub struct Scabbard(pub(crate) Arc<ScabbardContext>);

impl Scabbard {
    /// Creates the adapter for the ledger with these nodes, authorized by this token.
    ///
    /// Statuses are read from the first available node that `nodes` returns for a batch, evidence from all of them.
    /// Events come from the first node that opens a websocket. Requests of clients that name no service go to the nodes
    /// that `nodes` returns for an empty service id.
    pub fn new(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
    ) -> Result<Self, ScabbardError> {
        let client = Arc::new(HttpClient::new(&options.http)?);
        Self::with_client(token, nodes, options, client)
    }

    /// The same with another client, which sends the requests without those of the pass-through of clients.
    pub fn with_client(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
        client: Arc<dyn HttpRequests>,
    ) -> Result<Self, ScabbardError> {
        options.check()?;
        Ok(Self(Arc::new(ScabbardContext::new(token, nodes, options, client)?)))
    }

    /// Sets the source of information about which batches services have committed. Without it, a batch that no node has
    /// counts as new, and while a node is starting, a service of it that had batches before this process started counts
    /// as unknown.
    #[must_use]
    pub fn with_commit_history(
        self,
        history: Arc<dyn CommitHistory>,
        rules: NewBatchRules,
    ) -> Self {
        history.refuse_past_transactions();
        self.0.unknown_services.set_history(Arc::clone(&history));
        // Both can be set only once.
        let _ = self.0.history_of_services.set(history);
        let _ = self.0.rules.set(rules);
        self
    }

    /// Whether a node has a service, asked once.
    pub async fn is_service_at(&self, node: &str, service: &ServiceScopeId) -> BatchResult<bool> {
        self.0.is_service_at(node, service).await
    }
}

impl Ledger for Scabbard {
    fn facts(&self) -> LedgerFacts {
        facts(self.0.limits.late_arrival_limit)
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(TransactFormat::default())
    }

    /// Returns an empty id, because nodes of a Splinter network share no id.
    ///
    /// Each node has its own id, and lists only its own circuits, which are created and disbanded while a network
    /// exists. A Scabbard ledger is therefore identified by its kind and by the name that the operator gave it.
    fn identity<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(async { Ok(String::new()) })
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(self.post(node, submission))
    }

    fn statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(self.read_statuses(service_id, batch_ids))
    }

    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<EvidenceReport>> {
        Box::pin(self.find(batch))
    }

    fn needs_evidence(&self, service_id: &str, batch_id: &str) -> bool {
        self.is_valid_for_long(service_id, batch_id)
    }

    fn connections(&self) -> usize {
        self.0.connections
    }

    fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
        ServiceScopeId::from_service_id(service_id).map(drop)
    }

    fn probe<'a>(&'a self, node: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.0.client.ask_whether_it_answers(node))
    }

    fn events<'a>(&'a self, service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(self.open_stream(service_id))
    }

    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [ItemId],
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.0.ask_ahead(service_id, batch_ids))
    }

    fn has_service<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(self.check_service(service_id))
    }

    fn check_history<'a>(
        &'a self,
        service_id: &'a ServiceId,
        is_new: bool,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.0.refuse_unknown_history(service_id, is_new))
    }

    fn check_key<'a>(
        &'a self,
        service_id: &'a ServiceId,
        key: LedgerKey<'a>,
        scope: AccessScope,
    ) -> BoxFuture<'a, Result<(), KeyRefusal>> {
        Box::pin(self.0.check_key(service_id, key, scope))
    }

    fn compare_states<'a>(
        &'a self,
        paused: &'a [ServiceId],
    ) -> BoxFuture<'a, Vec<(ServiceId, bool)>> {
        Box::pin(self.compare_roots(paused))
    }

    fn serves(&self, is_post: bool, path: &str) -> bool {
        is_read(is_post, path)
    }

    fn forward(
        &self,
        request: ForwardedRequest,
    ) -> BoxFuture<'_, Result<ForwardedResponse, PassThroughError>> {
        Box::pin(self.forward_to_node(request))
    }

    fn serves_socket(&self, path: &str) -> bool {
        is_socket(path)
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Box::pin(self.open_socket_at_node(request, sent))
    }
}

impl fmt::Debug for Scabbard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scabbard").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
