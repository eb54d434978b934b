use bytes::Bytes;
use grid_batch_http::{
    HttpClient, HttpError, HttpOptions, HttpResponse, TextFrames, WebSocketOptions, join,
    open_websocket,
};

use crate::BasicAuth;

/// Sends requests to REST APIs, with authorization if it is configured.
#[derive(Debug, Clone)]
pub(crate) struct RestClient {
    client: HttpClient,
    auth: Option<BasicAuth>,
}

impl RestClient {
    pub(crate) fn new(options: &HttpOptions, auth: Option<BasicAuth>) -> Result<Self, HttpError> {
        Ok(Self { client: HttpClient::new(options)?, auth })
    }

    pub(crate) async fn get(&self, base: &str, path: &str) -> Result<HttpResponse, HttpError> {
        self.client.get(&join(base, path)?, &self.headers(None)).await
    }

    pub(crate) async fn post(
        &self,
        base: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<HttpResponse, HttpError> {
        self.client.post(&join(base, path)?, &self.headers(Some(content_type)), body).await
    }

    pub(crate) async fn subscribe(
        &self,
        base: &str,
        path: &str,
        subscription: &str,
        options: &WebSocketOptions,
    ) -> Result<TextFrames, HttpError> {
        open_websocket(&join(base, path)?, &self.headers(None), &[subscription], options).await
    }

    fn headers<'a>(&'a self, content_type: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
        let auth = self.auth.as_ref().map(|auth| ("authorization", auth.header()));
        auth.into_iter().chain(content_type.map(|value| ("content-type", value))).collect()
    }
}
