use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::{HttpClient, HttpError, HttpResponse, TextFrames, WebSocketOptions};

/// What adapters need of an HTTP client. [`HttpClient`] is one; a test has a mock, and a program may have another client
/// of its own.
///
/// An implementation must not send a request twice, and must return [`HttpError::NotSent`] only if the server certainly
/// did not get the request.
pub trait HttpRequests: fmt::Debug + Send + Sync {
    /// Sends a GET request with these headers.
    fn get<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>>;

    /// Sends a POST request with these headers and this body.
    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        body: Bytes,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>>;

    /// Opens a websocket with these headers and sends these texts.
    fn open_websocket<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        texts: &'a [&'a str],
        options: &'a WebSocketOptions,
    ) -> BoxFuture<'a, Result<TextFrames, HttpError>>;
}

impl HttpRequests for HttpClient {
    fn get<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(self.get(url, headers))
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        body: Bytes,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(self.post(url, headers, body))
    }

    fn open_websocket<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        texts: &'a [&'a str],
        options: &'a WebSocketOptions,
    ) -> BoxFuture<'a, Result<TextFrames, HttpError>> {
        Box::pin(self.open_websocket(url, headers, texts, options))
    }
}
