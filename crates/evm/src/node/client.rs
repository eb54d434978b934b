use std::sync::atomic::AtomicU64;

use grid_batch_http::HttpClient;

/// A client of one node. Each request is one POST.
#[derive(Debug)]
pub(crate) struct NodeClient {
    pub(super) http: HttpClient,
    pub(super) url: String,
    /// The id of the last request.
    pub(super) last_id: AtomicU64,
}

impl NodeClient {
    pub(crate) fn new(http: HttpClient, url: impl Into<String>) -> Self {
        Self { http, url: url.into(), last_id: AtomicU64::new(0) }
    }

    /// Another client of the same node, with the same connections.
    pub(crate) fn duplicate(&self) -> Self {
        Self::new(self.http.clone(), self.url.clone())
    }

    /// The URL of the node.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}
