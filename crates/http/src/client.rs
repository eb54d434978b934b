use std::{
    fmt,
    future::Future,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use grid_batch_nodes::NodePool;
use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::Incoming,
    header::{ACCEPT, HOST, HeaderValue},
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    HttpError, HttpResponse,
    connect::{AllowedAddresses, connect},
    connection::{Connection, SendFailure},
    pool::ConnectionPool,
    request_target::RequestTarget,
    response::retry_after,
    streamed::StreamedResponse,
    url::{HTTP_SCHEMES, Url},
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
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(12),
            max_response_bytes: 8 * 1024 * 1024,
            pool_idle_timeout: Duration::from_secs(3),
            nodes: NodePool::default(),
        }
    }
}

/// Sends requests over kept connections, which clones share.
///
/// It does not follow redirects, does not retry, and does not use a proxy.
#[derive(Clone)]
pub struct HttpClient {
    options: HttpOptions,
    pool: Arc<ConnectionPool>,
    addresses: AllowedAddresses,
}

impl HttpClient {
    /// Creates a client with these options.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        let pool = Arc::new(ConnectionPool::new(options.pool_idle_timeout));
        Ok(Self { options: options.clone(), pool, addresses: AllowedAddresses::default() })
    }

    /// Connects only to addresses that the rule allows. It is asked about each address to which the name of a
    /// host was resolved, for each connection: what the name meant before does not count.
    #[must_use]
    pub fn with_allowed_addresses(
        mut self,
        rule: impl Fn(IpAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.addresses = AllowedAddresses::by(rule);
        self
    }

    /// Sends a GET request with these headers.
    pub async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::GET, url, headers, Bytes::new()).await
    }

    /// Sends a POST request with these headers and this body.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::POST, url, headers, body.into()).await
    }

    /// Sends a DELETE request with these headers.
    pub async fn delete(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, HttpError> {
        self.execute(Method::DELETE, url, headers, Bytes::new()).await
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
        let deadline = RequestDeadline::after(limit);
        let body = body.map_or_else(Bytes::new, Bytes::from);
        let (url, request) = new_request(method, url, headers, body)?;
        let origin = url.origin();
        let sent = self.send(&url, &origin, request, deadline).await;
        self.report(&origin, sent.as_ref().map(|(_, response)| response.status().as_u16()));
        let (connection, response) = sent?;
        Ok(StreamedResponse::new(response, connection, limit, Arc::clone(&self.pool), origin))
    }

    async fn execute(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<HttpResponse, HttpError> {
        let deadline = RequestDeadline::after(self.options.request_timeout);
        let (url, request) = new_request(method, url, headers, body)?;
        let origin = url.origin();
        let response = self.send_and_read(&url, &origin, request, deadline).await;
        let status = response.as_ref().and_then(|response| match &response.body {
            Ok(_) => Ok(response.status),
            Err(error) => Err(error),
        });
        self.report(&origin, status);
        response
    }

    /// Reports whether the node answered. A gateway answers for a node that does not. A status of 503 tells
    /// nothing, unless the adapter knows more.
    fn report(&self, origin: &str, status: Result<u16, &HttpError>) {
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
        url: &Url,
        origin: &str,
        request: Request<Full<Bytes>>,
        deadline: RequestDeadline,
    ) -> Result<HttpResponse, HttpError> {
        let (mut connection, response) = self.send(url, origin, request, deadline).await?;
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let status = response.status().as_u16();
        let reading = connection.read(response.into_body(), self.options.max_response_bytes);
        let body = deadline.timeout(reading).await.unwrap_or_else(|| Err(deadline.timed_out()));
        if body.is_ok() && connection.is_ready() {
            self.pool.keep(origin.to_owned(), connection);
        }
        Ok(HttpResponse { status, retry_after, body })
    }

    /// Sends the request on a kept connection or on a new one.
    async fn send(
        &self,
        url: &Url,
        origin: &str,
        mut request: Request<Full<Bytes>>,
        deadline: RequestDeadline,
    ) -> Result<(Box<Connection>, Response<Incoming>), HttpError> {
        loop {
            let (mut connection, is_new) = match self.pool.take(origin) {
                Some(connection) => (connection, false),
                None => (self.connect(url, deadline).await?, true),
            };
            let sent = deadline.timeout(connection.send(request)).await;
            match sent.ok_or_else(|| deadline.timed_out())? {
                Ok(response) => return Ok((connection, response)),
                Err(SendFailure::Unsent(unsent, _)) if !is_new => request = *unsent,
                Err(SendFailure::Unsent(_, error) | SendFailure::NoResponse(error)) => {
                    return Err(error);
                }
            }
        }
    }

    async fn connect(
        &self,
        url: &Url,
        deadline: RequestDeadline,
    ) -> Result<Box<Connection>, HttpError> {
        let limit = self.options.connect_timeout;
        let connecting =
            deadline.timeout(timeout(limit, Box::pin(connect(url, limit, &self.addresses))));
        match connecting.await {
            Some(Ok(stream)) => Ok(Box::new(Connection::new(stream?).await?)),
            Some(Err(_)) => {
                Err(HttpError::NotSent(format!("connecting took longer than {limit:?}")))
            }
            None => Err(HttpError::NotSent(format!(
                "connecting took longer than the whole request may take, {:?}",
                deadline.limit
            ))),
        }
    }
}

/// The time by which a request must have ended.
#[derive(Clone, Copy)]
struct RequestDeadline {
    time: Instant,
    limit: Duration,
}

impl RequestDeadline {
    fn after(limit: Duration) -> Self {
        Self { time: Instant::now() + limit, limit }
    }

    /// The result of the future; `None` if it takes too long.
    async fn timeout<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.time, future).await.ok()
    }

    fn timed_out(&self) -> HttpError {
        HttpError::TimedOut(format!("the request took longer than {:?}", self.limit))
    }
}

fn new_request(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<(Url, Request<Full<Bytes>>), HttpError> {
    let RequestTarget { url, mut headers } = RequestTarget::new(url, HTTP_SCHEMES, headers)?;
    let invalid = |reason: &str| HttpError::InvalidRequest(reason.to_owned());
    let host =
        HeaderValue::try_from(url.authority()).map_err(|_| invalid("the host is invalid"))?;
    headers.entry(HOST).or_insert(host);
    headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() =
        url.path_and_query.parse().map_err(|_| invalid("the path of the URL is invalid"))?;
    *request.headers_mut() = headers;
    Ok((url, request))
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("options", &self.options).finish_non_exhaustive()
    }
}
