//! Who sent a request that came through a proxy.
//!
//! Any client can send headers that say where a request comes from. They count only on connections of proxies
//! that the operator trusts, and only those of the one kind that these proxies set.

mod forwarded;
mod trusted_proxies;
mod x_forwarded;

use std::net::IpAddr;

use axum::http::{HeaderMap, header::FORWARDED, request::Parts, uri::Authority};

pub use trusted_proxies::{
    ForwardedHeaders, ForwardedHeadersError, Network, NetworkError, TrustedProxies,
};

use crate::http::Client;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionPeer {
    /// `None`: it is connected to a Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// The address of this machine that it is connected to.
    pub(crate) own_address: Option<IpAddr>,
    pub(crate) is_encrypted: bool,
}

/// What a proxy tells about a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// The addresses that the request passed, the client's first. `None`: one that cannot be read.
    addresses: Vec<Option<IpAddr>>,
    is_encrypted: Option<bool>,
    host: Option<Authority>,
}

impl TrustedProxies {
    /// Who sent this request.
    pub(crate) fn client(&self, request: &Parts, peer: ConnectionPeer) -> Client {
        let ConnectionPeer { address, own_address, is_encrypted } = peer;
        let is_forwarded = is_forwarded(&request.headers);
        let client = Client {
            address,
            is_local: !is_forwarded && address.is_none_or(|address| address.is_loopback()),
            is_encrypted,
            host: None,
            own_address,
        };
        if !is_forwarded || !self.trusts(address) {
            return client;
        }
        let told = match self.headers {
            ForwardedHeaders::XForwarded => x_forwarded::read(&request.headers),
            ForwardedHeaders::Forwarded => forwarded::read(&request.headers),
        };
        let address = self.first_untrusted(&told.addresses).or(address);
        let is_encrypted = told.is_encrypted.unwrap_or(is_encrypted);
        Client { address, is_encrypted, host: told.host, ..client }
    }

    /// The address nearest to this server that is not of a trusted proxy. What is before it may be made up. An
    /// address that cannot be read ends the search, so that the one behind it counts.
    fn first_untrusted(&self, addresses: &[Option<IpAddr>]) -> Option<IpAddr> {
        let mut nearest = None;
        for address in addresses.iter().rev() {
            let Some(address) = address else { break };
            nearest = Some(*address);
            if !self.trusts(Some(*address)) {
                break;
            }
        }
        nearest
    }
}

/// Whether a proxy has passed the request on, trusted or not.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED)
        || headers.contains_key(x_forwarded::FOR)
        || headers.contains_key("x-real-ip")
        || headers.contains_key("via")
}

fn parse_host(text: &str) -> Option<Authority> {
    text.parse().ok().filter(|host: &Authority| !host.as_str().contains('@'))
}

fn parse_scheme(text: &str) -> Option<bool> {
    match text {
        "https" => Some(true),
        "http" => Some(false),
        _ => None,
    }
}

/// An address, in brackets or not, with a port or without.
fn parse_address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.parse().ok()?,
        None => match text.parse() {
            Ok(address) => address,
            Err(_) => text.rsplit_once(':')?.0.parse::<std::net::Ipv4Addr>().ok()?.into(),
        },
    };
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn client(headers: &[(&str, &str)], peer: &str, trusted: &[&str], forwarded: bool) -> Client {
        let request = headers
            .iter()
            .fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
        let headers =
            if forwarded { ForwardedHeaders::Forwarded } else { ForwardedHeaders::XForwarded };
        let networks = trusted.iter().map(|network| network.parse().unwrap()).collect();
        let address = (peer != "unix").then(|| peer.parse().unwrap());
        let peer = ConnectionPeer { address, own_address: None, is_encrypted: false };
        let proxies = TrustedProxies { networks, headers };
        proxies.client(&request.body(()).unwrap().into_parts().0, peer)
    }

    fn address(headers: &[(&str, &str)], peer: &str, trusted: &[&str]) -> String {
        let client = client(headers, peer, trusted, false);
        client.address.map_or("unix".to_owned(), |address| address.to_string())
    }

    #[test]
    fn headers_of_other_peers_do_not_count() {
        let headers = [
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil"),
        ];
        let found = client(&headers, "10.0.0.9", &["10.0.0.1"], false);
        let address = Some("10.0.0.9".parse().unwrap());
        let expected =
            Client { address, is_local: false, is_encrypted: false, host: None, own_address: None };
        assert_eq!(found, expected);
    }

    #[test]
    fn nearest_address_that_is_no_proxy_counts() {
        let trusted = ["10.0.0.0/8", "::1"];
        for (header, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("1.1.1.1, 192.0.2.7", "192.0.2.7"),
            ("1.1.1.1, 192.0.2.7, 10.9.9.9", "192.0.2.7"),
            ("10.1.1.1", "10.1.1.1"),
            ("1.1.1.1, unknown, 10.9.9.9", "10.9.9.9"),
            ("1.1.1.1, made up", "10.0.0.1"),
            ("192.0.2.7:4711", "192.0.2.7"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("", "10.0.0.1"),
        ] {
            let headers = [("x-forwarded-for", header)];
            assert_eq!(address(&headers, "10.0.0.1", &trusted), expected, "{header}");
        }
        let two = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "192.0.2.7")];
        assert_eq!(address(&two, "::1", &trusted), "192.0.2.7");
    }

    #[test]
    fn only_one_kind_of_headers_counts() {
        let headers = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2;proto=https")];
        for (forwarded, expected, is_encrypted) in
            [(false, "1.1.1.1", false), (true, "2.2.2.2", true)]
        {
            let client = client(&headers, "unix", &["unix"], forwarded);
            assert_eq!(client.address, Some(expected.parse().unwrap()));
            assert_eq!(client.is_encrypted, is_encrypted);
        }
    }

    #[test]
    fn scheme_and_host_are_those_that_the_last_proxy_tells() {
        let headers = [
            ("x-forwarded-for", "192.0.2.7"),
            ("x-forwarded-proto", "http, https"),
            ("x-forwarded-host", "made.up, grid.example:8443"),
        ];
        let found = client(&headers, "10.0.0.1", &["10.0.0.1"], false);
        assert!(found.is_encrypted);
        assert_eq!(found.host.unwrap().as_str(), "grid.example:8443");
        let forwarded =
            "for=1.1.1.1;host=made.up, For=\"[2001:db8::1]:99\";Proto=https;Host=\"h:1\"";
        let found = client(&[("forwarded", forwarded)], "10.0.0.1", &["10.0.0.1"], true);
        assert_eq!(found.address, Some("2001:db8::1".parse().unwrap()));
        assert!(found.is_encrypted);
        assert_eq!(found.host.unwrap().as_str(), "h:1");
    }

    #[test]
    fn request_that_was_forwarded_is_not_local() {
        for (headers, peer, is_local) in [
            (&[][..], "127.0.0.1", true),
            (&[], "unix", true),
            (&[], "192.0.2.7", false),
            (&[("x-forwarded-for", "127.0.0.1")], "127.0.0.1", false),
            (&[("forwarded", "for=127.0.0.1")], "127.0.0.1", false),
            (&[("via", "1.1 proxy")], "unix", false),
        ] {
            assert_eq!(client(headers, peer, &[], false).is_local, is_local, "{headers:?} {peer}");
        }
        let from = |address| [("x-forwarded-for", address)];
        assert!(!client(&from("192.0.2.7"), "127.0.0.1", &["127.0.0.1"], false).is_local);
        for (headers, trusted) in [
            (&from("127.0.0.1")[..], "127.0.0.1"),
            (&from("unknown")[..], "127.0.0.1"),
            (&[("x-real-ip", "192.0.2.7")][..], "127.0.0.1"),
            (&[("forwarded", "for=192.0.2.7")][..], "127.0.0.1"),
        ] {
            let found = client(headers, "127.0.0.1", &[trusted], false);
            assert!(!found.is_local, "{headers:?}");
        }
        assert!(!client(&from("127.0.0.1"), "unix", &["unix"], false).is_local);
    }
}
