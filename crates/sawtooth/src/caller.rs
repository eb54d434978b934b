use bytes::Bytes;
use grid_batch_http::{
    Answer, HttpClient, HttpError, HttpOptions, SocketOptions, TextFrames, join, open_socket,
};

use crate::BasicAuth;

/// Speaks to REST APIs at base addresses, as somebody or nobody.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    client: HttpClient,
    auth: Option<BasicAuth>,
}

impl Caller {
    pub(crate) fn new(options: &HttpOptions, auth: Option<BasicAuth>) -> Result<Self, HttpError> {
        Ok(Self { client: HttpClient::new(options)?, auth })
    }

    pub(crate) async fn get(&self, base: &str, path: &str) -> Result<Answer, HttpError> {
        self.client.get(&join(base, path)?, &self.headers(None)).await
    }

    pub(crate) async fn post(
        &self,
        base: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, HttpError> {
        self.client.post(&join(base, path)?, &self.headers(Some(content_type)), body).await
    }

    pub(crate) async fn open_socket(
        &self,
        base: &str,
        path: &str,
        first: &str,
        options: &SocketOptions,
    ) -> Result<TextFrames, HttpError> {
        open_socket(&join(base, path)?, &self.headers(None), &[first], options).await
    }

    fn headers<'a>(&'a self, content_type: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let auth = self.auth.as_ref().map(|auth| ("authorization", auth.header()));
        auth.into_iter().chain(content_type.map(|value| ("content-type", value))).collect()
    }
}
