//! A `mockall` mock of [`HttpRequests`], for tests of adapters.
#![expect(missing_docs, reason = "the mock and its methods are described by the trait it mocks")]

use std::future::ready;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mockall::mock;

use crate::{HttpError, HttpRequests, HttpResponse, TextFrames, WebSocketOptions};

// `mockall` cannot set expectations on methods whose result borrows from their arguments. This mock has methods of the
// same names that own theirs, and the trait's methods call them.
mock! {
    #[derive(Debug)]
    pub HttpRequests {
        pub fn get(&self, url: &str, headers: Vec<(String, String)>)
            -> Result<HttpResponse, HttpError>;
        pub fn post(&self, url: &str, headers: Vec<(String, String)>, body: Bytes)
            -> Result<HttpResponse, HttpError>;
        pub fn open_websocket(&self, url: &str, headers: Vec<(String, String)>, texts: Vec<String>)
            -> Result<TextFrames, HttpError>;
    }
}

impl HttpRequests for MockHttpRequests {
    fn get<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(ready(self.get(url, owned(headers))))
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        body: Bytes,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpError>> {
        Box::pin(ready(self.post(url, owned(headers), body)))
    }

    fn open_websocket<'a>(
        &'a self,
        url: &'a str,
        headers: &'a [(&'a str, &'a str)],
        texts: &'a [&'a str],
        _options: &'a WebSocketOptions,
    ) -> BoxFuture<'a, Result<TextFrames, HttpError>> {
        let texts = texts.iter().map(ToString::to_string).collect();
        Box::pin(ready(self.open_websocket(url, owned(headers), texts)))
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}
