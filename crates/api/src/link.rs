use std::{fmt::Write, net::SocketAddr};

use axum::http::{
    header::HOST,
    request::Parts,
    uri::{Authority, PathAndQuery},
};
use grid_batch_core::{HeaderId, ServiceId};
use grid_batch_withdrawals::WithdrawalId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::query::Query;

/// Left as they are: what a Scabbard service is named with, and what never needs to be escaped.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b':').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The address of the statuses of these batches.
pub(crate) fn to_statuses(
    request: &Parts,
    local: SocketAddr,
    ids: &[HeaderId],
    service: Option<&ServiceId>,
) -> String {
    let mut link = format!("{}/batch_statuses?id=", origin(request, local));
    for (position, id) in ids.iter().enumerate() {
        let comma = if position == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(link, "{comma}{id}");
    }
    if let Some(service) = service {
        let service = utf8_percent_encode(service.as_str(), ESCAPED);
        let _ = write!(link, "&service_id={service}");
    }
    link
}

/// The address that was asked for.
pub(crate) fn to_itself(request: &Parts, local: SocketAddr) -> String {
    to(request.uri.path_and_query().map_or("/", PathAndQuery::as_str), request, local)
}

/// The address of what is at this path.
pub(crate) fn to(path: &str, request: &Parts, local: SocketAddr) -> String {
    format!("{}{path}", origin(request, local))
}

/// The address of the page of a list that begins after this withdrawal.
pub(crate) fn to_next(
    request: &Parts,
    local: SocketAddr,
    query: &Query,
    last: &WithdrawalId,
) -> String {
    let mut link = to(request.uri.path(), request, local);
    let _ = write!(link, "?before={last}");
    for (name, value) in query.without("before") {
        let [name, value] = [name, value].map(|text| utf8_percent_encode(text, ESCAPED));
        let _ = write!(link, "&{name}={value}");
    }
    link
}

/// By which name the client reached us; our own address where it does not say.
fn origin(request: &Parts, local: SocketAddr) -> String {
    let host = request.headers.get(HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let named: Option<&Authority> = request.uri.authority().or(host.as_ref());
    match named.map(Authority::as_str).filter(|name| !name.contains('@')) {
        Some(name) => format!("http://{name}"),
        None => format!("http://{local}"),
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
    fn a_link_has_the_name_that_the_client_used() {
        let local = "127.0.0.1:9".parse().unwrap();
        for (uri, host, link) in [
            ("/a?b=c", Some(&b"grid:8008"[..]), "http://grid:8008/a?b=c"),
            ("/", Some(b"[::1]:80"), "http://[::1]:80/"),
            ("http://other/a", Some(b"grid"), "http://other/a"),
            ("/a", None, "http://127.0.0.1:9/a"),
            ("/a", Some(b"x?y/z"), "http://127.0.0.1:9/a"),
            ("/a", Some(b"user:secret@grid"), "http://127.0.0.1:9/a"),
            ("/a", Some(b"\xff\xfe"), "http://127.0.0.1:9/a"),
        ] {
            assert_eq!(to_itself(&request(uri, host), local), link);
        }
    }

    #[test]
    fn a_link_to_statuses_escapes_the_service() {
        let ids = [1, 2].map(|byte| HeaderId::from_bytes([byte; 64]));
        let service = "a::b?&=é".parse().unwrap();
        let request = request("/batches", Some(b"h"));
        let link = to_statuses(&request, "127.0.0.1:9".parse().unwrap(), &ids, Some(&service));
        let [one, two] = ["01", "02"].map(|byte| byte.repeat(64));
        assert_eq!(
            link,
            format!("http://h/batch_statuses?id={one},{two}&service_id=a::b%3F%26%3D%C3%A9")
        );
    }
}
