use std::{sync::Arc, time::Duration};

use grid_batch_core::{CommitHistory, StatusUrlResolver};
use grid_batch_http::{HttpError, WebSocketOptions};

use crate::{
    SawtoothEvents, SawtoothEvidenceReader, SawtoothIdentityReader, SawtoothNodeCheck,
    SawtoothOptions, SawtoothSender, SawtoothStatusReader, node_record::NodeRecord,
    outages::Outages, rest_client::RestClient,
};

/// The Sawtooth adapter: it creates the sender, the readers and the event source.
///
/// The sender and the identity reader have their own connections, and the others share theirs. A connection ends with the
/// runtime that opened it, and the end of the poller's runtime must not leave a submission in doubt.
/// All parts share what they see of outages of the nodes.
#[derive(Debug, Clone)]
pub struct Sawtooth {
    submit_client: RestClient,
    query_client: RestClient,
    identity_client: RestClient,
    websocket: WebSocketOptions,
    connections: usize,
    lost_after: Duration,
    /// `None` if the ledger has one node.
    record: Option<Arc<NodeRecord>>,
}

impl Sawtooth {
    /// Creates an adapter with these options.
    pub fn new(options: SawtoothOptions) -> Result<Self, HttpError> {
        let SawtoothOptions { http, websocket, basic_auth, connections, lost_after } = options;
        let outages = Outages::new(http.request_timeout);
        let client = || RestClient::new(&http, basic_auth.clone(), outages.clone());
        Ok(Self {
            submit_client: client()?,
            query_client: client()?,
            identity_client: client()?,
            websocket,
            connections,
            lost_after,
            record: None,
        })
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
        SawtoothSender::new(self.submit_client.clone())
    }

    /// Reads statuses from the nodes that the resolver returns.
    pub fn status_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothStatusReader {
        SawtoothStatusReader::new(
            self.query_client.clone(),
            resolver,
            self.connections,
            self.record.clone(),
        )
    }

    /// Looks for evidence at all nodes that the resolver returns.
    pub fn evidence_reader(&self, resolver: Arc<dyn StatusUrlResolver>) -> SawtoothEvidenceReader {
        SawtoothEvidenceReader::new(
            self.query_client.clone(),
            resolver,
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
