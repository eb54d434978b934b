//! The reports of all known nodes of a circuit about a batch.

use std::time::Duration;

use futures_util::future::join_all;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::{BatchError, BatchResult, MonotonicTime, ServiceId, ServiceScopeId};
use grid_batch_http::origin;
use log::debug;
use tokio::time::timeout;

use crate::{context::ScabbardContext, observed_nodes::EventSource, status_response::BatchReport};

/// A service at a node.
#[derive(Debug, Clone)]
pub(crate) struct ServiceNode {
    pub(crate) url: String,
    /// The service's id at this node.
    pub(crate) scope: ServiceScopeId,
    pub(crate) source: EventSource,
}

/// The report of a node about a batch.
#[derive(Debug)]
pub(crate) struct StatusAtNode {
    pub(crate) node: ServiceNode,
    /// The status, or why there is none.
    pub(crate) status: BatchResult<LedgerStatus>,
}

impl StatusAtNode {
    pub(crate) fn is_peer(&self) -> bool {
        self.node.source != EventSource::Node
    }
}

/// The status of a batch at several nodes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CombinedStatus {
    /// The strongest status that a node reports.
    pub(crate) status: LedgerStatus,
    /// Whether every node reported a status.
    pub(crate) is_complete: bool,
}

impl CombinedStatus {
    pub(crate) fn new<'a>(reports: impl Iterator<Item = &'a StatusAtNode>) -> Self {
        use LedgerStatus::{Committed, Invalid, NotReported, Pending, Valid};
        let statuses: Vec<_> = reports.map(|report| report.status.as_ref().ok()).collect();
        let is_reported = |status: &LedgerStatus| statuses.contains(&Some(status));
        let status = [Committed, Invalid, Pending, Valid].into_iter().find(is_reported);
        Self {
            status: status.unwrap_or(NotReported),
            is_complete: !statuses.is_empty() && statuses.iter().all(Option::is_some),
        }
    }
}

/// Why none of these nodes reports a status; `None` if one does. If a node to which batches are sent did not answer,
/// this is the reason, because its answer is awaited.
pub(crate) fn no_status<'a>(
    reports: impl Iterator<Item = &'a StatusAtNode> + Clone,
) -> Option<BatchError> {
    let is_outage = |error: &&BatchError| matches!(error, BatchError::Unavailable(_));
    if reports.clone().any(|report| report.status.is_ok()) {
        return None;
    }
    let at_nodes = reports.filter(|report| !report.is_peer());
    let errors: Vec<_> = at_nodes.filter_map(|report| report.status.as_ref().err()).collect();
    let error = errors.iter().copied().find(is_outage).or(errors.first().copied()).cloned();
    Some(error.unwrap_or_else(|| BatchError::Unavailable("no node was asked".to_owned())))
}

/// The answer of a node about several batches.
pub(crate) struct NodeAnswer {
    node: ServiceNode,
    reports: BatchResult<Vec<BatchReport>>,
}

impl NodeAnswer {
    pub(crate) fn is_complete(&self) -> bool {
        self.reports.is_ok()
    }

    /// The report of the node about this batch.
    pub(crate) fn about(&self, batch_id: &str) -> StatusAtNode {
        let status = match &self.reports {
            Err(error) => Err(error.clone()),
            Ok(reports) => {
                let report = reports.iter().find(|batch| batch.report.batch_id == batch_id);
                report.map(|batch| batch.report.status).ok_or_else(|| {
                    let reason = format!("{} did not report the batch", origin(&self.node.url));
                    BatchError::InvalidAnswer(reason)
                })
            }
        };
        StatusAtNode { node: self.node.clone(), status }
    }
}

impl ScabbardContext {
    /// The nodes to which batches of the service are sent, and the circuit's other nodes.
    pub(crate) fn all_nodes(
        &self,
        scope: &ServiceScopeId,
        batch_id: &str,
    ) -> BatchResult<Vec<ServiceNode>> {
        let at_nodes = self.nodes_of_batch(scope, batch_id)?.into_iter().map(|url| ServiceNode {
            url,
            scope: scope.clone(),
            source: EventSource::Node,
        });
        let at_peers = self.peers_of(scope).into_iter().enumerate().map(|(index, peer)| {
            let source = EventSource::Peer(index);
            ServiceNode { url: peer.url.clone(), scope: peer.peer.clone(), source }
        });
        Ok(at_nodes.chain(at_peers).collect())
    }

    /// Records whether a node could answer a request that was sent at `asked_at`.
    pub(crate) fn record_answer<T>(
        &self,
        service: &ServiceId,
        source: EventSource,
        result: &BatchResult<T>,
        asked_at: MonotonicTime,
    ) {
        let is_answered = !matches!(result, Err(BatchError::Unavailable(_)));
        let now = self.clock.monotonic();
        self.observed
            .update(service, source, |node| node.outages.record(is_answered, asked_at, now));
    }

    /// Asks all of these nodes about batches of this service, and waits at most this long.
    pub(crate) async fn ask_all(
        &self,
        nodes: Vec<ServiceNode>,
        service: &ServiceId,
        ids: &[&str],
        limit: Duration,
    ) -> Vec<NodeAnswer> {
        join_all(nodes.into_iter().map(async |node| {
            let ServiceNode { url, scope, source } = &node;
            let asked_at = self.clock.monotonic();
            let query = self.query_statuses_of_service(url, scope, service, ids);
            let reports = timeout(limit, query).await.unwrap_or_else(|_| {
                Err(BatchError::Unavailable("no answer in time".to_owned()).at(&origin(url)))
            });
            if let Err(error) = &reports {
                debug!(service:% = scope, error:%; "a node does not report its batches");
            }
            self.record_answer(service, *source, &reports, asked_at);
            NodeAnswer { node, reports }
        }))
        .await
    }
}
