use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use grid_batch_core::ledger::CommitHistory;
use grid_batch_core::{
    BatchError, BatchResult, Clock, ItemId, PeerService, ScopeId, ServiceId, ServiceScopeId,
};
use grid_batch_http::{Forwarder, HttpError, HttpRequests};
use grid_batch_nodes::{NodePool, StatusUrlResolver};
use grid_batch_protocol::CylinderToken;
use grid_batch_support::{BlockingWork, GroupedWork};

use crate::{
    ScabbardOptions,
    accepted_keys::AcceptedKeys,
    applied_transactions::AppliedTransactions,
    batch_history::{BatchHistory, ObservationPoint},
    endings::EndLimits,
    foreign_transactions::ForeignTransactions,
    new_batches::NewBatchRules,
    next_batches::NextBatches,
    node_client::NodeClient,
    observed_nodes::ObservedNodes,
    peer_listeners::PeerListeners,
    repeated_events::LatestEvents,
    state_roots::StateRootLog,
    unknown_services::UnknownServices,
};

/// How many reads of the history of services run at the same time.
const HISTORY_READS: usize = 8;

/// Writes to the history of services. An item is whether that of a service is known; `None`: only the transactions of
/// other clients are stored.
type HistoryWrites = GroupedWork<Option<(ServiceId, bool)>, BatchResult<()>>;

/// The state that the clones of one adapter share.
pub(crate) struct ScabbardContext {
    pub(crate) client: NodeClient,
    pub(crate) forwarder: Forwarder,
    /// The nodes of a service. An empty service id stands for requests of clients that name no service.
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connections: usize,
    pub(crate) limits: EndLimits,
    /// A websocket that receives nothing for this long is treated as ended.
    pub(crate) silence_timeout: Duration,
    /// How long a node may take to answer a ping on a websocket.
    pub(crate) probe_limit: Duration,
    /// How long a node may take to answer the question before a POST. It is limited so that time is left for the POST.
    pub(crate) question_limit: Duration,
    peers: Vec<PeerService>,
    pub(crate) peer_listeners: PeerListeners,
    pub(crate) state_roots: StateRootLog,
    pub(crate) applied: AppliedTransactions,
    pub(crate) latest_events: LatestEvents,
    pub(crate) observed: Arc<ObservedNodes>,
    pub(crate) history: BatchHistory,
    pub(crate) next_batches: NextBatches,
    /// Knows when nodes did not answer, from all requests of the process.
    pub(crate) pool: NodePool,
    /// What the store knows about the batches that services have committed.
    pub(crate) history_of_services: OnceLock<Arc<dyn CommitHistory>>,
    /// Limits reads of it. Each blocks a thread, and thousands of services may submit at the same time.
    pub(crate) history_reads: BlockingWork,
    /// Groups writes to it, which may wait for locked rows and must not stop reads.
    pub(crate) history_writes: HistoryWrites,
    pub(crate) rules: OnceLock<NewBatchRules>,
    pub(crate) foreign_transactions: ForeignTransactions,
    pub(crate) unknown_services: UnknownServices,
    pub(crate) accepted_keys: AcceptedKeys,
}

impl ScabbardContext {
    pub(crate) fn new(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
        client: Arc<dyn HttpRequests>,
    ) -> Result<Self, HttpError> {
        let silence_timeout = options.websocket.silence_timeout;
        Ok(Self {
            pool: options.http.nodes.clone(),
            client: NodeClient::new(token, client, options.websocket),
            forwarder: Forwarder::new(&options.http)?,
            nodes,
            history: BatchHistory::new(Arc::clone(&options.clock)),
            clock: options.clock,
            next_batches: NextBatches::new(),
            connections: options.connections,
            limits: EndLimits {
                late_arrival_limit: options.late_arrival_limit,
                coordinator_timeout: options.coordinator_timeout,
            },
            silence_timeout,
            probe_limit: options.http.request_timeout,
            question_limit: options.http.request_timeout / 2,
            peers: options.peers,
            peer_listeners: PeerListeners::default(),
            state_roots: StateRootLog::default(),
            applied: AppliedTransactions::new(),
            latest_events: LatestEvents::new(),
            observed: Arc::default(),
            history_of_services: OnceLock::new(),
            history_reads: BlockingWork::new(HISTORY_READS),
            history_writes: HistoryWrites::default(),
            rules: OnceLock::new(),
            foreign_transactions: ForeignTransactions::new(),
            unknown_services: UnknownServices::new(),
            accepted_keys: AcceptedKeys::new(),
        })
    }

    /// The nodes to query about a batch: at least one, without duplicates, the preferred one first.
    pub(crate) fn nodes_of_batch(
        &self,
        scope: &ServiceScopeId,
        batch_id: &str,
    ) -> BatchResult<Vec<String>> {
        let mut nodes: Vec<String> = Vec::new();
        for url in self.nodes.status_urls(scope.service_id().as_str(), batch_id) {
            if !nodes.contains(&url) {
                nodes.push(url);
            }
        }
        if nodes.is_empty() {
            let reason = format!("no node is configured for service {scope}");
            return Err(BatchError::InternalError(reason));
        }
        Ok(nodes)
    }

    /// The observations of the service until now.
    pub(crate) fn moment(&self, service: &ServiceId) -> ObservationPoint {
        let subscriptions = self.observed.at_post(service);
        ObservationPoint { subscriptions, observations: self.applied.observation_count() }
    }

    /// The service at the other nodes of its circuit.
    pub(crate) fn peers_of(&self, scope: &ServiceScopeId) -> Vec<&PeerService> {
        self.peers.iter().filter(|peer| peer.service == *scope).collect()
    }
}

pub(crate) fn parse_scope(service_id: &str) -> BatchResult<ServiceScopeId> {
    service_id.parse().map_err(internal_error)
}

pub(crate) fn parse_batch_id(text: &str) -> BatchResult<ItemId> {
    text.parse().map_err(internal_error)
}

fn internal_error(error: impl std::error::Error) -> BatchError {
    BatchError::InternalError(error.to_string())
}
