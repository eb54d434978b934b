use std::{sync::Arc, time::Duration};

use grid_batch_core::{Clock, CommitHistory, StatusUrlResolver, SystemClock};
use grid_batch_http::{HttpError, HttpOptions, WebSocketOptions};

use crate::{
    SawtoothAskAhead, SawtoothEvents, SawtoothEvidenceReader, SawtoothIdentityReader,
    SawtoothNodeCheck, SawtoothOptions, SawtoothSender, SawtoothStatusReader,
    SawtoothTransactionCheck, applied_transactions::AppliedTransactions, before_post::BeforePost,
    node_record::NodeRecord, outages::Outages, rest_client::RestClient,
};

/// The Sawtooth adapter: it creates the sender, the readers and the event source.
///
/// The sender and the identity reader have their own connections, and the others share theirs. A connection
/// ends with the runtime that opened it, and the end of the poller's runtime must not leave a submission in
/// doubt. All parts share what they see of outages of the nodes.
#[derive(Debug, Clone)]
pub struct Sawtooth {
    submit_client: RestClient,
    /// Asks before a POST, with a shorter timeout.
    question_client: (RestClient, Duration),
    query_client: RestClient,
    identity_client: RestClient,
    websocket: WebSocketOptions,
    connections: usize,
    lost_after: Duration,
    before_post: Arc<BeforePost>,
    applied: Arc<AppliedTransactions>,
    /// `None` if the ledger has one node.
    record: Option<Arc<NodeRecord>>,
}

impl Sawtooth {
    /// Creates an adapter with these options.
    pub fn new(options: SawtoothOptions) -> Result<Self, HttpError> {
        let SawtoothOptions { http, websocket, basic_auth, connections, lost_after } = options;
        let outages = Outages::new(http.request_timeout);
        let client_with =
            |http: &HttpOptions| RestClient::new(http, basic_auth.clone(), outages.clone());
        let client = || client_with(&http);
        let limit = http.request_timeout / 2;
        let short = HttpOptions { request_timeout: limit, ..http.clone() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Ok(Self {
            submit_client: client()?,
            question_client: (client_with(&short)?, limit),
            query_client: client()?,
            identity_client: client()?,
            websocket,
            connections,
            lost_after,
            before_post: Arc::new(BeforePost::new(clock.clone())),
            applied: Arc::new(AppliedTransactions::new(clock)),
            record: None,
        })
    }

    /// Sets the clock. The default is the system's clock. Call it before the parts are created.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        let before_post = Arc::new(BeforePost::new(clock.clone()));
        Self { before_post, applied: Arc::new(AppliedTransactions::new(clock)), ..self }
    }

    /// Prepares the adapter for a ledger with these nodes: a batch is sent only to a node that has
    /// applied the batch before it, and only such a node's INVALID is final.
    #[must_use]
    pub fn with_several_nodes(
        self,
        history: Arc<dyn CommitHistory>,
        nodes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let nodes = nodes.into_iter().map(Into::into).collect();
        Self { record: Some(Arc::new(NodeRecord::new(history, nodes))), ..self }
    }

    /// Checks a node before a batch is sent to it; `None` if the ledger has one node.
    pub fn node_check(&self) -> Option<SawtoothNodeCheck> {
        let record = Arc::clone(self.record.as_ref()?);
        Some(SawtoothNodeCheck::new(self.submit_client.clone(), record))
    }

    /// Reads which ledger a node belongs to.
    pub fn identity_reader(&self) -> SawtoothIdentityReader {
        SawtoothIdentityReader::with_client(self.identity_client.clone())
    }

    /// Submits batches.
    pub fn sender(&self) -> SawtoothSender {
        SawtoothSender::new(
            self.submit_client.clone(),
            self.question_client.clone(),
            self.before_post.clone(),
        )
    }

    /// Asks the nodes that the resolver returns about batches that will be sent soon.
    pub fn ask_ahead(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothAskAhead {
        SawtoothAskAhead::new(self.query_client.clone(), resolver, self.before_post.clone())
    }

    /// Tells which transactions are in the chain, at the nodes that the resolver returns.
    pub fn transaction_check(
        &self,
        resolver: Arc<dyn StatusUrlResolver>,
    ) -> SawtoothTransactionCheck {
        SawtoothTransactionCheck::new(self.query_client.clone(), resolver)
    }

    /// Reads statuses from the nodes that the resolver returns.
    pub fn status_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothStatusReader {
        SawtoothStatusReader::new(
            self.query_client.clone(),
            resolver,
            self.connections,
            self.before_post.clone(),
            self.record.clone(),
        )
    }

    /// Looks for evidence at all nodes that the resolver returns.
    pub fn evidence_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothEvidenceReader {
        SawtoothEvidenceReader::new(
            self.query_client.clone(),
            resolver,
            (self.before_post.clone(), self.applied.clone()),
            self.lost_after,
            self.record.clone(),
        )
    }

    /// Subscribes to blocks at the first reachable of these nodes.
    pub fn events(&self, nodes: impl IntoIterator<Item = impl Into<String>>) -> SawtoothEvents {
        let nodes = nodes.into_iter().map(Into::into).collect();
        SawtoothEvents::new(self.query_client.clone(), nodes, self.websocket.clone())
    }
}
