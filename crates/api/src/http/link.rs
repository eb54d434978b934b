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
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::http::{Client, Query};

/// The characters to escape in a query: all except those of Scabbard service ids and those that URLs
/// never need to escape.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b':').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URL of a path on this server.
pub(crate) fn to_path(path: &str, request: &Parts, local_addr: SocketAddr) -> String {
    format!("{}{path}", origin(request, local_addr))
}

/// The URL of the request itself.
pub(crate) fn to_request(request: &Parts, local_addr: SocketAddr) -> String {
    to_path(request.uri.path_and_query().map_or("/", PathAndQuery::as_str), request, local_addr)
}

/// The URL of the statuses of these batches.
pub(crate) fn to_batch_statuses(
    request: &Parts,
    local_addr: SocketAddr,
    ids: &[ItemId],
    service_id: Option<&ServiceId>,
) -> String {
    let mut link = to_path("/batch_statuses?id=", request, local_addr);
    for (position, id) in ids.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(link, "{separator}{id}");
    }
    if let Some(service_id) = service_id {
        let service_id = utf8_percent_encode(service_id.as_str(), ESCAPED);
        let _ = write!(link, "&service_id={service_id}");
    }
    link
}

/// The URL of a batch of a service.
pub(crate) fn to_batch(
    request: &Parts,
    local_addr: SocketAddr,
    id: &ItemId,
    service_id: &ServiceId,
) -> String {
    let service_id = utf8_percent_encode(service_id.as_str(), ESCAPED);
    to_path(&format!("/v1/batches/{id}?service_id={service_id}"), request, local_addr)
}

/// The URL of a service.
pub(crate) fn to_service(
    request: &Parts,
    local_addr: SocketAddr,
    service_id: &ServiceId,
) -> String {
    let service_id = utf8_percent_encode(service_id.as_str(), ESCAPED);
    to_path(&format!("/v1/services/{service_id}"), request, local_addr)
}

/// The URL of a part of what is known about a batch.
pub(crate) fn to_part_of_batch(
    request: &Parts,
    local_addr: SocketAddr,
    id: &ItemId,
    part: &str,
    service_id: &ServiceId,
) -> String {
    let service_id = utf8_percent_encode(service_id.as_str(), ESCAPED);
    to_path(&format!("/v1/batches/{id}/{part}?service_id={service_id}"), request, local_addr)
}

/// The URL of the next page of a list: the same query, with another value of `before`.
pub(crate) fn to_next_page(
    request: &Parts,
    local_addr: SocketAddr,
    query: &Query,
    before: impl Display,
) -> String {
    let mut link = to_path(request.uri.path(), request, local_addr);
    let _ = write!(link, "?before={before}");
    for (name, value) in query.without("before") {
        let [name, value] = [name, value].map(|text| utf8_percent_encode(text, ESCAPED));
        let _ = write!(link, "&{name}={value}");
    }
    link
}

/// Scheme and host of this server, as the client knows them.
fn origin(request: &Parts, local_addr: SocketAddr) -> String {
    format!("{}://{}", scheme(request), host(request, local_addr))
}

/// The scheme of the request, as the client knows it.
pub(crate) fn scheme(request: &Parts) -> &'static str {
    if Client::of(request).is_some_and(|client| client.is_encrypted) { "https" } else { "http" }
}

/// The host of the request, or the local address if the request has no valid one.
pub(crate) fn host(request: &Parts, local_addr: SocketAddr) -> String {
    let header = request.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let forwarded = Client::of(request).and_then(|client| client.host.as_ref());
    let host: Option<&Authority> = forwarded.or(request.uri.authority()).or(header.as_ref());
    match host.map(Authority::as_str).filter(|host| !host.contains('@')) {
        Some(host) => host.to_owned(),
        None => local_addr.to_string(),
    }
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
            assert_eq!(to_request(&request(uri, host), local_addr), link);
        }
    }

    #[test]
    fn link_to_statuses_escapes_the_service_id() {
        let ids = [1, 2].map(|byte| ItemId::from_bytes([byte; 64]));
        let service_id = "a::b?&=é".parse().unwrap();
        let request = request("/batches", Some(b"h"));
        let local_addr = "127.0.0.1:9".parse().unwrap();
        let link = to_batch_statuses(&request, local_addr, &ids, Some(&service_id));
        let [one, two] = ["01", "02"].map(|byte| byte.repeat(64));
        assert_eq!(
            link,
            format!("http://h/batch_statuses?id={one},{two}&service_id=a::b%3F%26%3D%C3%A9")
        );
    }
}
