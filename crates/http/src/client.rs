use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use reqwest::{Client, Method, Request, Response, redirect::Policy};

use crate::{
    Answer, HttpError, address::HTTP, answer::retry_after, error::with_sources, target::Target,
    tls::choose_cryptography,
};

/// How requests are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// The longest that connecting may take.
    pub connect_limit: Duration,
    /// The longest that a whole request may take, its answer included.
    pub request_limit: Duration,
    /// So many bytes of an answer are read at most.
    pub answer_limit: usize,
    /// A connection that was idle for so long is not used again: the other side may be closing it,
    /// and what is sent then is in doubt.
    pub idle_limit: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_limit: Duration::from_secs(5),
            request_limit: Duration::from_secs(12),
            answer_limit: 8 * 1024 * 1024,
            idle_limit: Duration::from_secs(3),
        }
    }
}

/// Makes requests, over connections that are kept. Clones share them.
///
/// It follows no redirection, tries nothing twice, and uses no proxy.
#[derive(Clone)]
pub struct HttpClient {
    client: Client,
    answer_limit: usize,
}

impl HttpClient {
    /// A client with these options.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        choose_cryptography();
        let client = Client::builder()
            .connect_timeout(options.connect_limit)
            .timeout(options.request_limit)
            .pool_idle_timeout(options.idle_limit)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .tcp_nodelay(true)
            .build()
            .map_err(|error| HttpError::Client(with_sources(&error)))?;
        Ok(Self { client, answer_limit: options.answer_limit })
    }

    /// GETs an address with these headers.
    pub async fn get(&self, url: &str, headers: &[(&str, &str)]) -> Result<Answer, HttpError> {
        self.ask(request(Method::GET, url, headers)?).await
    }

    /// POSTs a body to an address with these headers.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, HttpError> {
        let mut request = request(Method::POST, url, headers)?;
        *request.body_mut() = Some(body.into().into());
        self.ask(request).await
    }

    async fn ask(&self, request: Request) -> Result<Answer, HttpError> {
        let response = self.client.execute(request).await.map_err(HttpError::of_request)?;
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let status = response.status().as_u16();
        Ok(Answer { status, retry_after, body: self.read(response).await })
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(HttpError::of_request)? {
            if body.len() + chunk.len() > self.answer_limit {
                return Err(HttpError::TooLong { limit: self.answer_limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

fn request(method: Method, url: &str, headers: &[(&str, &str)]) -> Result<Request, HttpError> {
    let target = Target::new(url, HTTP, headers)?;
    let mut request = Request::new(method, target.url);
    *request.headers_mut() = target.headers;
    Ok(request)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("answer_limit", &self.answer_limit)
            .finish_non_exhaustive()
    }
}
