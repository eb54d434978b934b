use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use grid_batch_nodes::NodePool;
use grid_batch_support::present_trace;
use reqwest::{Body, Method, Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::{
    HttpError, HttpHeaders, HttpResponse, TlsOptions,
    connections::{AllowedAddresses, Connections},
    request::{header_map, new_request},
    response::retry_after,
    streamed::StreamedResponse,
    url::{HTTP_SCHEMES, origin_of, parse},
};

/// Timeouts and limits of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// The maximum duration of connecting.
    pub connect_timeout: Duration,
    /// The maximum duration of a request, from connecting to the end of the response.
    pub request_timeout: Duration,
    /// The maximum length of a response's body.
    pub max_response_bytes: usize,
    /// A connection that was idle for this long is not used again: the server may be closing it,
    /// and a request that is sent at that moment may or may not arrive.
    pub pool_idle_timeout: Duration,
    /// What all requests report to: which nodes answer.
    pub nodes: NodePool,
    /// Further headers of each request that has no header of the same name.
    pub headers: HttpHeaders,
    /// Whom TLS trusts, and the certificate of this client.
    pub tls: TlsOptions,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(12),
            max_response_bytes: 8 * 1024 * 1024,
            pool_idle_timeout: Duration::from_secs(3),
            nodes: NodePool::default(),
            headers: HttpHeaders::default(),
            tls: TlsOptions::default(),
        }
    }
}

impl HttpOptions {
    /// The maximum duration of connecting. It ends before a short time for the whole request, so that a request that
    /// was not sent is known as such.
    pub(crate) fn longest_connecting(&self) -> Duration {
        self.connect_timeout.min(self.request_timeout * 9 / 10)
    }
}

/// Sends requests over kept connections, which clones share, and through the proxies of the environment.
///
/// Requests for a batch carry its trace (`in_trace` of grid-batch-support). It does not follow redirects, and does not
/// retry.
#[derive(Clone)]
pub struct HttpClient {
    options: HttpOptions,
    pub(crate) connections: Arc<Connections>,
}

impl HttpClient {
    /// Creates a client with these options.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        Self::with_allowed(options, AllowedAddresses::default())
    }

    /// Creates a client that connects only to addresses that the rule allows. It is asked about each address to which
    /// the name of a host was resolved, for each connection: what the name meant before does not count. A proxy
    /// resolves names itself, so its own rules count there.
    pub fn with_allowed_addresses(
        options: &HttpOptions,
        rule: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Result<Self, HttpError> {
        Self::with_allowed(options, AllowedAddresses::by(rule))
    }

    fn with_allowed(options: &HttpOptions, allowed: AllowedAddresses) -> Result<Self, HttpError> {
        let connections = Arc::new(Connections::new(options, allowed)?);
        Ok(Self { options: options.clone(), connections })
    }

    /// Sends a GET request with these headers.
    pub async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::GET, url, headers, None).await
    }

    /// Sends a POST request with these headers and this body.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::POST, url, headers, Some(body.into())).await
    }

    /// Sends a DELETE request with these headers.
    pub async fn delete(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::DELETE, url, headers, None).await
    }

    /// Sends a GET request, or a POST request if there is a body, and returns when the head of the response
    /// has arrived. The body is read part by part.
    pub async fn open(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<StreamedResponse, HttpError> {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let limit = self.options.request_timeout;
        let url = parse(url, HTTP_SCHEMES)?;
        let origin = origin_of(&url);
        let sent = self.send(method, url, headers, body.map(Bytes::from)).await;
        let status = sent.as_ref().map(|(response, _)| response.status().as_u16());
        self.report(&origin, status);
        Ok(StreamedResponse::new(sent?.0, limit))
    }

    async fn execute(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        let url = parse(url, HTTP_SCHEMES)?;
        let origin = origin_of(&url);
        let response = self.send_and_read(method, url, headers, body).await;
        let status = response.as_ref().and_then(|response| match &response.body {
            Ok(_) => Ok(response.status),
            Err(error) => Err(error),
        });
        self.report(&origin, status);
        response
    }

    /// Reports whether the node answered. A gateway answers for a node that does not. A status of 503 tells
    /// nothing, unless the adapter knows more.
    pub(crate) fn report(&self, origin: &str, status: Result<u16, &HttpError>) {
        let nodes = &self.options.nodes;
        match status {
            Ok(status @ (502 | 504)) => nodes.failed(origin, &format!("HTTP status {status}")),
            Ok(503) => {}
            Ok(_) => nodes.answered(origin),
            Err(error) if error.is_no_answer() => nodes.failed(origin, &error.to_string()),
            Err(_) => {}
        }
    }

    async fn send_and_read(
        &self,
        method: Method,
        url: Url,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        let (response, deadline) = self.send(method, url, headers, body).await?;
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let status = response.status().as_u16();
        let body = timeout_at(deadline, read(response, self.options.max_response_bytes)).await;
        Ok(HttpResponse {
            status,
            retry_after,
            body: body.unwrap_or_else(|_| Err(self.timed_out())),
        })
    }

    /// Sends the request. Returns when the head of the response has arrived, with the deadline of the whole response,
    /// which begins once certificates are read: a request that is not sent yet must not count as timed out.
    async fn send(
        &self,
        method: Method,
        url: Url,
        headers: &[(&str, &str)],
        body: Option<Bytes>,
    ) -> Result<(Response, Instant), HttpError> {
        let client = self.connections.client(&url).await?;
        let mut request = new_request(&client, method, url, headers, body.map(Body::from))?;
        if let Some(trace) = present_trace() {
            let headers: Vec<(&str, &str)> = trace.headers().collect();
            request.headers_mut().extend(header_map(&headers)?);
        }
        let deadline = Instant::now() + self.options.request_timeout;
        let sent = timeout_at(deadline, client.execute(request)).await;
        let sent = sent.map_err(|_| self.timed_out())?;
        Ok((sent.map_err(|error| HttpError::from_reqwest(&error))?, deadline))
    }

    fn timed_out(&self) -> HttpError {
        let limit = self.options.request_timeout;
        HttpError::TimedOut(format!("the request took longer than {limit:?}"))
    }
}

/// The body of the response, up to this limit.
async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    let failed = |error| HttpError::from_reqwest(&error);
    while let Some(part) = response.chunk().await.map_err(failed)? {
        if bytes.len() + part.len() > limit {
            return Err(HttpError::TooLong { limit });
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("options", &self.options).finish_non_exhaustive()
    }
}
