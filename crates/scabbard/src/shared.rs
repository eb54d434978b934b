use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchResult, Clock, HeaderId, ScopeId, ServiceScopeId, StatusUrlResolver,
};
use grid_batch_http::{HttpError, origin};
use grid_batch_protocol::CylinderToken;

use crate::{ScabbardOptions, batches::Batches, caller::Caller, seen::Seen, watch::Watch};

/// What the parts of one adapter share.
pub(crate) struct Shared {
    pub(crate) caller: Caller,
    pub(crate) nodes: Arc<dyn StatusUrlResolver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connections: usize,
    pub(crate) absent_after: Duration,
    pub(crate) dropped_after: Duration,
    pub(crate) seen: Seen,
    pub(crate) watch: Arc<Watch>,
    pub(crate) batches: Batches,
}

impl Shared {
    pub(crate) fn new(
        token: &CylinderToken,
        nodes: Arc<dyn StatusUrlResolver>,
        options: ScabbardOptions,
    ) -> Result<Self, HttpError> {
        Ok(Self {
            caller: Caller::new(token, &options.http, options.websocket)?,
            nodes,
            clock: options.clock,
            connections: options.connections,
            absent_after: options.absent_after,
            dropped_after: options.dropped_after,
            seen: Seen::new(),
            watch: Arc::default(),
            batches: Batches::new(),
        })
    }

    /// The nodes to ask about a batch, the best first, each once.
    pub(crate) fn nodes_of(&self, scope: &ServiceScopeId, batch: &str) -> BatchResult<Vec<String>> {
        let mut nodes: Vec<String> = Vec::new();
        for url in self.nodes.status_urls(scope.service_id().as_str(), batch) {
            if !nodes.contains(&url) {
                nodes.push(url);
            }
        }
        if nodes.is_empty() {
            let reason = format!("there is no node to ask about the service {scope}");
            return Err(BatchError::InternalError(reason));
        }
        Ok(nodes)
    }
}

pub(crate) fn scope_of(service_id: &str) -> BatchResult<ServiceScopeId> {
    service_id.parse().map_err(unusable)
}

pub(crate) fn id_of(text: &str) -> BatchResult<HeaderId> {
    text.parse().map_err(unusable)
}

fn unusable(error: impl std::error::Error) -> BatchError {
    BatchError::InternalError(error.to_string())
}

/// The error with the node that it is from.
pub(crate) fn located(node: &str, error: BatchError) -> BatchError {
    let located = |text| format!("{}: {text}", origin(node));
    match error {
        BatchError::InternalError(text) => BatchError::InternalError(located(text)),
        BatchError::Unavailable(text) => BatchError::Unavailable(located(text)),
        BatchError::InvalidAnswer(text) => BatchError::InvalidAnswer(located(text)),
        error => error,
    }
}
