//! Absolute URLs in answers. They start with the scheme and the host that the client used in its request, as far
//! as trusted proxies tell.

use std::{
    fmt::{Display, Write},
    net::SocketAddr,
};

use axum::http::{
    header::HOST,
    request::Parts,
    uri::{Authority, PathAndQuery},
};
use grid_batch_core::{ItemId, ServiceId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use crate::http::{Client, Query};

/// The characters to escape in a query: all except those of Scabbard service ids and those that URLs
/// never need to escape.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b':').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Absolute URLs in the answer to a request.
pub(crate) struct Links<'a> {
    request: &'a Parts,
    local_addr: SocketAddr,
}

impl<'a> Links<'a> {
    pub(crate) fn new(request: &'a Parts, local_addr: SocketAddr) -> Self {
        Self { request, local_addr }
    }

    /// A path on this server.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme(), self.host())
    }

    /// The request itself.
    pub(crate) fn own(&self) -> String {
        self.path(self.request.uri.path_and_query().map_or("/", PathAndQuery::as_str))
    }

    /// The statuses of these batches.
    pub(crate) fn batch_statuses(&self, ids: &[ItemId], service_id: Option<&ServiceId>) -> String {
        let mut link = self.path("/batch_statuses?id=");
        push_ids(&mut link, ids);
        if let Some(service_id) = service_id {
            // Writing to a string does not fail.
            let _ = write!(link, "&service_id={}", escaped(service_id.as_str()));
        }
        link
    }

    /// A batch of a service, or a part of what is known about it, such as `/explain`.
    pub(crate) fn batch(&self, id: &ItemId, part: &str, service_id: &ServiceId) -> String {
        let service_id = escaped(service_id.as_str());
        self.path(&format!("/v1/batches/{id}{part}?service_id={service_id}"))
    }

    /// A service.
    pub(crate) fn service(&self, service_id: &ServiceId) -> String {
        self.path(&format!("/v1/services/{}", escaped(service_id.as_str())))
    }

    /// The next page of a list: the same query, from another position.
    pub(crate) fn next_page(&self, query: &Query, before: impl Display) -> String {
        let mut link = self.path(self.request.uri.path());
        let _ = write!(link, "?before={before}");
        for (name, value) in query.without(&["after", "before"]) {
            let _ = write!(link, "&{}={}", escaped(name), escaped(value));
        }
        link
    }

    /// The scheme of the request, as the client knows it.
    pub(crate) fn scheme(&self) -> &'static str {
        let is_encrypted = Client::of(self.request).is_some_and(|client| client.is_encrypted);
        if is_encrypted { "https" } else { "http" }
    }

    /// The host of the request, or the local address if the request has no valid one.
    pub(crate) fn host(&self) -> String {
        let Parts { headers, uri, .. } = self.request;
        let header = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
        let forwarded = Client::of(self.request).and_then(|client| client.host.as_ref());
        let host: Option<&Authority> = forwarded.or(uri.authority()).or(header.as_ref());
        match host.map(Authority::as_str).filter(|host| !host.contains('@')) {
            Some(host) => host.to_owned(),
            None => self.local_addr.to_string(),
        }
    }
}

/// Appends ids, separated by commas.
pub(crate) fn push_ids(link: &mut String, ids: &[ItemId]) {
    for (position, id) in ids.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let _ = write!(link, "{separator}{id}");
    }
}

fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ESCAPED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn request(uri: &str, host: Option<&[u8]>) -> Parts {
        let request = Request::get(uri);
        let request = host.into_iter().fold(request, |request, host| request.header(HOST, host));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn link_has_the_host_of_the_request() {
        let local_addr = "127.0.0.1:9".parse().unwrap();
        for (uri, host, link) in [
            ("/a?b=c", Some(&b"grid:8008"[..]), "http://grid:8008/a?b=c"),
            ("/", Some(b"[::1]:80"), "http://[::1]:80/"),
            ("http://other/a", Some(b"grid"), "http://other/a"),
            ("/a", None, "http://127.0.0.1:9/a"),
            ("/a", Some(b"x?y/z"), "http://127.0.0.1:9/a"),
            ("/a", Some(b"user:secret@grid"), "http://127.0.0.1:9/a"),
            ("/a", Some(b"\xff\xfe"), "http://127.0.0.1:9/a"),
        ] {
            assert_eq!(Links::new(&request(uri, host), local_addr).own(), link);
        }
    }

    #[test]
    fn link_to_statuses_escapes_the_service_id() {
        let ids = [1, 2].map(|byte| ItemId::from_bytes([byte; 64]));
        let service_id = "a::b?&=é".parse().unwrap();
        let request = request("/batches", Some(b"h"));
        let local_addr = "127.0.0.1:9".parse().unwrap();
        let link = Links::new(&request, local_addr).batch_statuses(&ids, Some(&service_id));
        let [one, two] = ["01", "02"].map(|byte| byte.repeat(64));
        assert_eq!(
            link,
            format!("http://h/batch_statuses?id={one},{two}&service_id=a::b%3F%26%3D%C3%A9")
        );
    }
}
