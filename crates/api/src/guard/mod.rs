//! Refuses what a web page makes a browser send.
//!
//! Without tokens, every program that reaches the interface may use it. A browser on the same machine reaches it for every page that it shows, so requests of pages are told from others by
//! the headers that a page cannot choose.

mod error;
mod host;
mod origin;

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{HOST, ORIGIN},
        request::Parts,
        uri::Authority,
    },
    response::{IntoResponse, Response},
};
use grid_batch_core::Excerpt;

pub(crate) use error::OriginError;
pub use host::{HostName, HostNameError};
pub use origin::{WebOrigin, WebOriginError};

use crate::{
    health::LIVE_PATH,
    http::{ApiError, Client, discard_body},
};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The hosts and the origins of requests that are answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowedSites {
    /// Besides the names of the machine itself, and the address of the interface.
    pub(crate) hosts: Vec<HostName>,
    /// Besides pages of this server.
    pub(crate) origins: Vec<WebOrigin>,
}

/// Checks where a request comes from, and what it takes this server for.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    allowed: AllowedSites,
    local: IpAddr,
}

impl RequestGuard {
    pub(crate) fn new(allowed: AllowedSites, local: IpAddr) -> Self {
        Self { allowed, local }
    }

    fn check(&self, request: &Parts) -> Result<(), ApiError> {
        let host = self.check_host(request)?;
        // A page that came through a proxy knows only the host of the proxy.
        let forwarded = Client::of(request).and_then(|client| client.host.as_ref());
        self.check_origin(&request.headers, forwarded.or(host.as_ref()))
    }

    /// A page of a name that was made to resolve to this machine is of the same origin as its requests,
    /// for the browser. Only the host shows it. No browser leaves the host out.
    fn check_host(&self, request: &Parts) -> Result<Option<Authority>, ApiError> {
        let headers = request.headers.get_all(HOST).iter();
        let hosts: Vec<&[u8]> = headers
            .map(HeaderValue::as_bytes)
            .chain(request.uri.authority().map(|authority| authority.as_str().as_bytes()))
            .collect();
        let client = Client::of(request);
        let own = client.and_then(|client| client.own_address);
        let parse = |host: &&[u8]| {
            Authority::try_from(*host).ok().filter(|host| self.is_allowed(host, own))
        };
        if let Some(forwarded) = client.and_then(|client| client.host.as_ref())
            && !self.is_allowed(forwarded, None)
        {
            return Err(OriginError::Host(Excerpt::of(forwarded.as_str())).into());
        }
        match hosts.iter().find(|host| parse(host).is_none()) {
            Some(other) => Err(OriginError::Host(excerpt(other)).into()),
            None => Ok(hosts.last().and_then(parse)),
        }
    }

    /// `own` is the address that the connection is to: the interface may listen at all addresses.
    fn is_allowed(&self, authority: &Authority, own: Option<IpAddr>) -> bool {
        HostName::of(authority).is_some_and(|host| {
            host.is_loopback()
                || host.address() == Some(self.local)
                || (own.is_some() && host.address() == own)
                || self.allowed.hosts.contains(&host)
        })
    }

    fn check_origin(&self, headers: &HeaderMap, host: Option<&Authority>) -> Result<(), ApiError> {
        let mut is_allowed = false;
        for given in headers.get_all(ORIGIN) {
            let origin = given.to_str().ok().and_then(|text| text.parse::<WebOrigin>().ok());
            let is_own = |origin: &WebOrigin| host.is_some_and(|host| origin.is_at(host));
            match origin {
                Some(origin) if self.allowed.origins.contains(&origin) => is_allowed = true,
                Some(origin) if is_own(&origin) => {}
                _ => return Err(OriginError::Origin(excerpt(given.as_bytes())).into()),
            }
        }
        let is_other = |site: &&HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
        match headers.get_all(SEC_FETCH_SITE).iter().find(is_other) {
            Some(site) if !is_allowed => Err(OriginError::Site(excerpt(site.as_bytes())).into()),
            _ => Ok(()),
        }
    }
}

fn excerpt(bytes: &[u8]) -> Excerpt {
    Excerpt::of(&String::from_utf8_lossy(bytes))
}

/// Answers requests of web pages with an error, whatever they ask for: reading would reveal what is
/// stored, too.
pub(crate) async fn refuse_web_pages<R: Future<Output = Response>>(
    guard: &RequestGuard,
    request: Request,
    next: impl FnOnce(Request) -> R,
) -> Response {
    let (parts, body) = request.into_parts();
    // It says nothing but that the server runs, to supervisors that know it by any name.
    if parts.uri.path() == LIVE_PATH {
        return next(Request::from_parts(parts, body)).await;
    }
    match guard.check(&parts) {
        Ok(()) => next(Request::from_parts(parts, body)).await,
        Err(error) => {
            discard_body(&parts.headers, body);
            error.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> RequestGuard {
        let allowed = AllowedSites {
            hosts: vec!["grid.example".parse().unwrap()],
            origins: vec!["https://console.example".parse().unwrap()],
        };
        RequestGuard::new(allowed, "10.0.0.1".parse().unwrap())
    }

    fn check(uri: &str, headers: &[(&str, &str)]) -> Result<(), ApiError> {
        let request = headers
            .iter()
            .fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        guard().check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn host_must_be_known() {
        for host in ["localhost", "127.0.0.1:8080", "[::1]:80", "10.0.0.1:1", "GRID.example:9"] {
            assert_eq!(check("/", &[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(check("/", &[]), Ok(()));
        for host in [
            "evil.example",
            "10.0.0.2",
            "localhost.evil.example",
            "me@localhost",
            "localhost:me@localhost:80",
            "localhost:99999",
            "localhost:",
            "",
            "a b",
        ] {
            let refused = Err(OriginError::Host(Excerpt::of(host)).into());
            assert_eq!(check("/", &[("host", host)]), refused, "{host}");
        }
    }

    #[test]
    fn every_host_of_a_request_must_be_known() {
        let (local, other) = (("host", "localhost"), ("host", "evil.example"));
        for headers in [[local, other], [other, local]] {
            assert!(check("/", &headers).is_err());
        }
        assert!(check("http://evil.example/", &[local]).is_err());
        assert!(check("http://localhost/", &[other]).is_err());
        assert!(check("http://localhost/", &[local]).is_ok());
    }

    #[test]
    fn origin_must_be_the_server_or_allowed() {
        let host = ("host", "localhost:8080");
        for origin in ["http://localhost:8080", "https://console.example"] {
            assert_eq!(check("/", &[host, ("origin", origin)]), Ok(()), "{origin}");
        }
        for origin in
            ["null", "", "http://localhost", "http://127.0.0.1:8080", "https://evil.example"]
        {
            let refused = Err(OriginError::Origin(Excerpt::of(origin)).into());
            assert_eq!(check("/", &[host, ("origin", origin)]), refused, "{origin}");
        }
        let two = [host, ("origin", "http://localhost:8080"), ("origin", "https://evil.example")];
        assert!(check("/", &two).is_err());
        assert!(check("/", &[("origin", "http://localhost")]).is_err(), "without a host");
    }

    #[test]
    fn other_site_must_have_an_allowed_origin() {
        let host = ("host", "localhost:8080");
        for site in ["same-origin", "none"] {
            assert_eq!(check("/", &[host, ("sec-fetch-site", site)]), Ok(()), "{site}");
        }
        for site in ["cross-site", "same-site", "", "Same-Origin"] {
            let refused = Err(OriginError::Site(Excerpt::of(site)).into());
            assert_eq!(check("/", &[host, ("sec-fetch-site", site)]), refused, "{site}");
            let own = ("origin", "http://localhost:8080");
            assert_eq!(check("/", &[host, own, ("sec-fetch-site", site)]), refused, "{site}");
            let allowed = ("origin", "https://console.example");
            assert_eq!(check("/", &[host, allowed, ("sec-fetch-site", site)]), Ok(()), "{site}");
        }
    }
}
