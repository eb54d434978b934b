use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_core::future::BoxFuture;
use grid_batch_core::batches::{BatchFormat, StatusReport};
use grid_batch_core::evidence::{Evidence, EvidenceReport, TransactionAnswers, UnresolvedBatch};
use grid_batch_core::ledger::{
    CommitHistory, ForwardedRequest, ForwardedResponse, ForwardedSocket, Ledger, LedgerEventStream,
    LedgerFacts, PassThroughError, SocketMessages, Submission, SubmissionAnswer,
};
use grid_batch_core::queue::ListSize;
use grid_batch_core::{
    BatchResult, Clock, GlobalScopeId, ItemId, ScopeId, ScopeIdError, ServiceId, SystemClock,
};
use grid_batch_http::{Forwarder, HttpClient, HttpError, HttpOptions, HttpRequests};
use grid_batch_nodes::StatusUrlResolver;

use grid_batch_protocol::TransactFormat;
use grid_batch_support::lock;

use crate::{
    SawtoothOptions, applied_transactions::TransactionSearches, before_post::BeforePost,
    facts::facts, node_record::NodeRecord, outages::Outages, pass_through::is_read,
    publisher::Publisher, rest_client::RestClient,
};

/// A Sawtooth network, accessed through the REST APIs of its nodes. Clones share their observations.
///
/// Each runtime has connections of its own, so the end of the poller's runtime leaves no submission in doubt.
#[derive(Clone)]
pub struct Sawtooth {
    pub(crate) client: RestClient,
    /// Asks before a POST, with a shorter timeout, so that there is time for the POST.
    pub(crate) question_client: RestClient,
    pub(crate) question_limit: Duration,
    pub(crate) forwarder: Forwarder,
    pub(crate) options: SawtoothOptions,
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
    pub(crate) before_post: Arc<BeforePost>,
    pub(crate) applied: Arc<TransactionSearches>,
    /// `None` if the ledger has one node.
    pub(crate) record: Option<Arc<NodeRecord>>,
    /// `None` if no lists may be sent.
    pub(crate) publisher: Option<Arc<Publisher>>,
    /// The node of the latest subscription.
    pub(crate) subscribed: Arc<Mutex<Option<String>>>,
}

impl Sawtooth {
    /// The network with these nodes.
    pub fn new(
        options: SawtoothOptions,
        nodes: Arc<dyn StatusUrlResolver>,
    ) -> Result<Self, HttpError> {
        let http = &options.http;
        let client: Arc<dyn HttpRequests> = Arc::new(HttpClient::new(http)?);
        let short = HttpOptions { request_timeout: http.request_timeout / 2, ..http.clone() };
        let question_client = Arc::new(HttpClient::new(&short)?);
        Self::with_clients(options, nodes, [client, question_client])
    }

    /// The network with these nodes, to which another client sends the requests, without those of the pass-through of
    /// clients.
    pub fn with_client(
        options: SawtoothOptions,
        nodes: Arc<dyn StatusUrlResolver>,
        client: Arc<dyn HttpRequests>,
    ) -> Result<Self, HttpError> {
        Self::with_clients(options, nodes, [Arc::clone(&client), client])
    }

    fn with_clients(
        options: SawtoothOptions,
        nodes: Arc<dyn StatusUrlResolver>,
        clients: [Arc<dyn HttpRequests>; 2],
    ) -> Result<Self, HttpError> {
        let SawtoothOptions { http, basic_auth, .. } = &options;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let outages = Arc::new(Outages::new(http.request_timeout, Arc::clone(&clock)));
        let [client, question_client] = clients.map(|client| {
            RestClient::new(client, basic_auth.clone(), outages.clone(), http.nodes.clone())
        });
        Ok(Self {
            client,
            question_client,
            question_limit: http.request_timeout / 2,
            forwarder: Forwarder::new(http)?,
            options,
            nodes,
            before_post: Arc::new(BeforePost::new(clock.clone())),
            applied: Arc::new(TransactionSearches::new(clock)),
            record: None,
            publisher: None,
            subscribed: Arc::default(),
        })
    }

    /// Sets the clock. The default is the system's clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let before_post = Arc::new(BeforePost::new(clock.clone()));
        Self { before_post, applied: Arc::new(TransactionSearches::new(clock)), ..self }
    }

    /// Sets the nodes that are asked about a batch. Observations are kept.
    #[must_use]
    pub fn with_nodes(self, nodes: Arc<dyn StatusUrlResolver>) -> Self {
        Self { nodes, ..self }
    }

    /// Allows lists of conflicting batches while the node has no peers, and opens and closes their size accordingly. Not
    /// for a network with several nodes.
    #[must_use]
    pub fn with_lists(self, lists: ListSize) -> Self {
        Self { publisher: Some(Arc::new(Publisher::new(lists))), ..self }
    }

    /// Prepares the adapter for a network with these nodes. A batch is sent only to a node that has applied the batches
    /// before it, and only INVALID from such a node is final.
    #[must_use]
    pub fn with_several_nodes(
        self,
        history: Arc<dyn CommitHistory>,
        nodes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let nodes = nodes.into_iter().map(Into::into).collect();
        Self { record: Some(Arc::new(NodeRecord::new(history, nodes))), ..self }
    }
}

impl Ledger for Sawtooth {
    fn facts(&self) -> LedgerFacts {
        facts(self.options.keeps_order, self.options.late_arrival_limit)
    }

    fn format(&self) -> Arc<dyn BatchFormat> {
        Arc::new(TransactFormat::default())
    }

    fn identity<'a>(&'a self, node: &'a str) -> BoxFuture<'a, BatchResult<String>> {
        Box::pin(self.read_first_block(node))
    }

    fn send<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, SubmissionAnswer> {
        Box::pin(self.post(node, submission))
    }

    fn send_list<'a>(
        &'a self,
        node: &'a str,
        list: &'a [Submission<ServiceId>],
    ) -> BoxFuture<'a, Vec<SubmissionAnswer>> {
        Box::pin(self.post_list(node, list))
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
        Box::pin(async move {
            let reports = self.find_at_their_nodes(std::slice::from_ref(batch)).await;
            reports.into_iter().next().unwrap_or(Ok(Evidence::Inconclusive.into()))
        })
    }

    fn find_evidence_of_all<'a>(
        &'a self,
        batches: &'a [UnresolvedBatch],
    ) -> BoxFuture<'a, Vec<BatchResult<EvidenceReport>>> {
        Box::pin(self.find_at_their_nodes(batches))
    }

    fn connections(&self) -> usize {
        self.options.connections
    }

    fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
        GlobalScopeId::from_service_id(service_id).map(drop)
    }

    fn events<'a>(&'a self, _service_id: &'a str) -> BoxFuture<'a, BatchResult<LedgerEventStream>> {
        Box::pin(self.subscribe())
    }

    fn event_node(&self, _service_id: &str) -> Option<String> {
        lock(&self.subscribed).clone()
    }

    fn ask_ahead<'a>(
        &'a self,
        service_id: &'a ServiceId,
        batch_ids: &'a [ItemId],
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.ask_before_turn(service_id, batch_ids))
    }

    fn look_up_transactions<'a>(
        &'a self,
        transaction_ids: &'a [ItemId],
    ) -> BoxFuture<'a, BatchResult<TransactionAnswers>> {
        Box::pin(self.find_transactions(transaction_ids))
    }

    fn check_node<'a>(
        &'a self,
        node: &'a str,
        submission: &'a Submission<ServiceId>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.check_before(node, submission))
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
        path == "/subscriptions"
    }

    fn open_socket(
        &self,
        request: ForwardedRequest,
        sent: SocketMessages,
    ) -> BoxFuture<'_, Result<ForwardedSocket, PassThroughError>> {
        Box::pin(self.open_socket_at_node(request, sent))
    }
}

impl fmt::Debug for Sawtooth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sawtooth").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
