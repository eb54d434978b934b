use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use reqwest::{Client, Method, Request, Response, redirect::Policy};

use grid_batch_support::ErrorChain;

use crate::{
    HttpError, HttpResponse, request_target::RequestTarget, response::retry_after,
    tls::install_crypto_provider, url::HTTP_SCHEMES,
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
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(12),
            max_response_bytes: 8 * 1024 * 1024,
            pool_idle_timeout: Duration::from_secs(3),
        }
    }
}

/// Sends requests over kept connections, which clones share.
///
/// It does not follow redirects, does not retry, and does not use a proxy.
#[derive(Clone)]
pub struct HttpClient {
    client: Client,
    max_response_bytes: usize,
}

impl HttpClient {
    /// Creates a client with these options.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        install_crypto_provider();
        let client = Client::builder()
            .connect_timeout(options.connect_timeout)
            .timeout(options.request_timeout)
            .pool_idle_timeout(options.pool_idle_timeout)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .map_err(|error| HttpError::Client(ErrorChain(&error).to_string()))?;
        Ok(Self { client, max_response_bytes: options.max_response_bytes })
    }

    /// Sends a GET request with these headers.
    pub async fn get(
        &self,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<HttpResponse, HttpError> {
        self.execute(new_request(Method::GET, url, headers)?).await
    }

    /// Sends a POST request with these headers and this body.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        let mut request = new_request(Method::POST, url, headers)?;
        *request.body_mut() = Some(body.into().into());
        self.execute(request).await
    }

    async fn execute(&self, request: Request) -> Result<HttpResponse, HttpError> {
        let response = self.client.execute(request).await.map_err(HttpError::from_reqwest)?;
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let status = response.status().as_u16();
        Ok(HttpResponse { status, retry_after, body: self.read_body(response).await })
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(HttpError::from_reqwest)? {
            if body.len() + chunk.len() > self.max_response_bytes {
                return Err(HttpError::TooLong { limit: self.max_response_bytes });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

fn new_request(method: Method, url: &str, headers: &[(&str, &str)]) -> Result<Request, HttpError> {
    let target = RequestTarget::new(url, HTTP_SCHEMES, headers)?;
    let mut request = Request::new(method, target.url);
    *request.headers_mut() = target.headers;
    Ok(request)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("max_response_bytes", &self.max_response_bytes)
            .finish_non_exhaustive()
    }
}
