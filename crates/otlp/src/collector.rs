//! The HTTP client of the crates of OpenTelemetry.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use futures_core::future::BoxFuture;
use grid_batch_http::{HttpRequests, origin};
use grid_batch_support::lock;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// Sends their requests, and keeps why the last one failed: their errors do not say.
#[derive(Clone)]
pub(crate) struct CollectorClient {
    client: Arc<dyn HttpRequests>,
    failure: Arc<Mutex<Option<Failure>>>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// The collector can never accept these spans.
    pub(crate) is_final: bool,
}

impl CollectorClient {
    pub(crate) fn new(client: Arc<dyn HttpRequests>) -> Self {
        Self { client, failure: Arc::default() }
    }

    /// Why the last request failed.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        lock(&self.failure).take()
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        let headers: Vec<(&str, &str)> = head
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect();
        let fail = |reason: String, is_final| {
            let reason = format!("{reason} (at the collector {})", origin(&url));
            *lock(&self.failure) = Some(Failure { reason, is_final });
        };
        let response = self.client.post(&url, &headers, body).await;
        let response = response.inspect_err(|error| fail(error.to_string(), false))?;
        if !(200..=299).contains(&response.status) {
            let reason = format!("HTTP status {}: {}", response.status, response.text());
            fail(reason, response.status == 400);
        }
        let body = Bytes::from(response.body.unwrap_or_default());
        Ok(Response::builder().status(response.status).body(body)?)
    }
}

impl HttpClient for CollectorClient {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        'c: 'f,
    {
        Box::pin(self.send(request))
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CollectorClient")
    }
}
