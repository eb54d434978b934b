use std::sync::Arc;

use grid_batch_core::{CommitHistory, StatusUrlResolver};
use grid_batch_http::{HttpError, WebSocketOptions};

use crate::{
    SawtoothEvents, SawtoothEvidenceReader, SawtoothNodeCheck, SawtoothOptions, SawtoothSender,
    SawtoothStatusReader, node_record::NodeRecord, rest_client::RestClient,
};

/// The Sawtooth adapter: it creates the sender, the readers and the event source.
///
/// The sender has its own connections, and the other three share theirs. A connection ends with the
/// runtime that opened it, and the end of the poller's runtime must not leave a submission in doubt.
#[derive(Debug, Clone)]
pub struct Sawtooth {
    submit_client: RestClient,
    query_client: RestClient,
    websocket: WebSocketOptions,
    connections: usize,
    /// `None` if the ledger has one node.
    record: Option<Arc<NodeRecord>>,
}

impl Sawtooth {
    /// Creates an adapter with these options.
    pub fn new(options: SawtoothOptions) -> Result<Self, HttpError> {
        let SawtoothOptions { http, websocket, basic_auth, connections } = options;
        let client = || RestClient::new(&http, basic_auth.clone());
        Ok(Self {
            submit_client: client()?,
            query_client: client()?,
            websocket,
            connections,
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
        SawtoothEvidenceReader::new(self.query_client.clone(), resolver)
    }

    /// Subscribes to blocks at the first reachable of these nodes.
    pub fn events(&self, nodes: impl IntoIterator<Item = impl Into<String>>) -> SawtoothEvents {
        let nodes = nodes.into_iter().map(Into::into).collect();
        SawtoothEvents::new(self.query_client.clone(), nodes, self.websocket.clone())
    }
}
