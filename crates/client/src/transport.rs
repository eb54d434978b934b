use std::fmt::Display;

use grid_batch_core::batches::TraceContext;
use grid_batch_http::{HttpClient, HttpError, HttpOptions, HttpResponse, join};
use grid_batch_support::{in_trace, redact_url};
use tokio::runtime::{Builder, Runtime};

use crate::{ClientError, ClientOptions, client::LONGEST_WAIT};

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRequest<'a> {
    /// `GET`, `POST` or `DELETE`.
    pub method: &'static str,
    /// The path with its query.
    pub target: &'a str,
    /// The type of the body; `None` without one.
    pub content_type: Option<&'static str>,
    /// The key by which the server recognizes a repeated request, in visible ASCII characters.
    pub idempotency_key: Option<&'a str>,
    /// The body.
    pub body: Vec<u8>,
}

/// How the requests of a client reach an interface: over HTTP, or in the same process.
pub trait Transport: Send + Sync {
    /// The name of the interface, for messages.
    fn name(&self) -> String;

    /// Sends a request and waits for its answer.
    fn send(&self, request: ClientRequest<'_>) -> Result<HttpResponse, ClientError>;
}

/// Sends requests to a server.
pub(crate) struct HttpTransport {
    url: String,
    authorization: Option<String>,
    trace: Option<TraceContext>,
    http: HttpClient,
    runtime: Runtime,
}

impl HttpTransport {
    pub(crate) fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let http = HttpOptions {
            request_timeout: options.timeout.saturating_add(LONGEST_WAIT),
            max_response_bytes: 64 * 1024 * 1024,
            ..HttpOptions::default()
        };
        let http = HttpClient::new(&http).map_err(|error| unusable(&options.url, &error))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let authorization = options.token.map(|token| format!("Bearer {}", token.trim()));
        Ok(Self {
            url: options.url,
            authorization,
            trace: options.trace,
            http,
            runtime: runtime.map_err(ClientError::System)?,
        })
    }

    fn failed(&self, source: HttpError) -> ClientError {
        match source {
            HttpError::InvalidRequest(reason) => unusable(&self.url, &reason),
            source => ClientError::Unreachable { url: self.name(), source },
        }
    }
}

fn unusable(url: &str, reason: &dyn Display) -> ClientError {
    ClientError::Url { url: redact_url(url), reason: reason.to_string() }
}

impl Transport for HttpTransport {
    fn name(&self) -> String {
        redact_url(&self.url)
    }

    fn send(&self, request: ClientRequest<'_>) -> Result<HttpResponse, ClientError> {
        let ClientRequest { method, target, content_type, idempotency_key, body } = request;
        let url = join(&self.url, target).map_err(|error| unusable(&self.url, &error))?;
        let authorization = self.authorization.iter().map(|it| ("authorization", it.as_str()));
        let content_type = content_type.map(|content_type| ("content-type", content_type));
        let key = idempotency_key.map(|key| ("idempotency-key", key));
        let headers: Vec<_> = authorization.chain(content_type).chain(key).collect();
        let answer = async {
            match method {
                "GET" => self.http.get(&url, &headers).await,
                "DELETE" => self.http.delete(&url, &headers).await,
                _ => self.http.post(&url, &headers, body).await,
            }
        };
        let answer = self.runtime.block_on(in_trace(self.trace.as_ref(), answer));
        let mut answer = answer.map_err(|error| self.failed(error))?;
        answer.body = Ok(answer.body.map_err(|error| self.failed(error))?);
        Ok(answer)
    }
}
