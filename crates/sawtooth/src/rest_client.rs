use std::sync::Arc;

use bytes::Bytes;
use grid_batch_core::MonotonicTime;
use grid_batch_http::{
    HttpError, HttpRequests, HttpResponse, TextFrames, WebSocketOptions, join, origin,
};
use grid_batch_nodes::NodePool;

use crate::{
    BasicAuth,
    outages::{ObservedEnd, Outages},
};

/// Sends requests to REST APIs, with authorization if it is configured, and records outages.
#[derive(Clone)]
pub(crate) struct RestClient {
    client: Arc<dyn HttpRequests>,
    auth: Option<BasicAuth>,
    outages: Arc<Outages>,
    nodes: NodePool,
}

impl RestClient {
    pub(crate) fn new(
        client: Arc<dyn HttpRequests>,
        auth: Option<BasicAuth>,
        outages: Arc<Outages>,
        nodes: NodePool,
    ) -> Self {
        Self { client, auth, outages, nodes }
    }

    pub(crate) fn outages(&self) -> &Outages {
        &self.outages
    }

    pub(crate) async fn get(&self, base: &str, path: &str) -> Result<HttpResponse, HttpError> {
        let (url, sent_at) = (join(base, path)?, self.outages.monotonic());
        let result = self.client.get(&url, &self.headers(None)).await;
        self.record(base, sent_at, &result);
        result
    }

    pub(crate) async fn post(
        &self,
        base: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        let (url, sent_at) = (join(base, path)?, self.outages.monotonic());
        let headers = self.headers(Some(content_type));
        let result = self.client.post(&url, &headers, body.into()).await;
        self.record(base, sent_at, &result);
        result
    }

    /// Records whether the node answered. A REST API may answer although its validator does not.
    fn record(&self, base: &str, sent_at: MonotonicTime, result: &Result<HttpResponse, HttpError>) {
        let end = ObservedEnd::of(result);
        if let (Ok(response), ObservedEnd::Unanswered | ObservedEnd::Disconnected) = (result, end) {
            let reason = format!("HTTP status {}: its validator does not answer", response.status);
            self.nodes.failed(&origin(base), &reason);
        }
        self.outages.record(base, sent_at, end);
    }

    /// Records that the connection to a node, or to the validator behind it, broke.
    pub(crate) fn record_disconnection(&self, base: &str, reason: &str) {
        self.nodes.failed(&origin(base), reason);
        self.outages.record(base, self.outages.monotonic(), ObservedEnd::Disconnected);
    }

    pub(crate) async fn subscribe(
        &self,
        base: &str,
        path: &str,
        subscription: &str,
        options: &WebSocketOptions,
    ) -> Result<TextFrames, HttpError> {
        let (url, headers) = (join(base, path)?, self.headers(None));
        self.client.open_websocket(&url, &headers, &[subscription], options).await
    }

    fn headers<'a>(&'a self, content_type: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let auth = self.auth.as_ref().map(|auth| ("authorization", auth.header()));
        auth.into_iter().chain(content_type.map(|value| ("content-type", value))).collect()
    }
}
