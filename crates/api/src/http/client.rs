use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{request::Parts, uri::Authority};

/// Who sent a request and what it was sent to, as far as trusted proxies tell; otherwise the other end of the
/// connection. It is an extension of every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// `None`: it came over a Unix socket.
    pub(crate) address: Option<IpAddr>,
    /// Whether it certainly came from this machine.
    pub(crate) is_local: bool,
    /// Whether it came over TLS.
    pub(crate) is_encrypted: bool,
    /// The host that the client asked, if a proxy has put its own in the place of it.
    pub(crate) host: Option<Authority>,
    /// The address of this machine to which the connection is.
    pub(crate) own_address: Option<IpAddr>,
}

impl Client {
    /// The client of a request.
    pub(crate) fn of(request: &Parts) -> Option<&Self> {
        request.extensions.get()
    }

    /// By what limits of addresses count.
    pub(crate) fn counted_address(&self) -> IpAddr {
        counted_address(self.address)
    }
}

/// By what limits count an address: an IPv6 address stands for its network, whose addresses one client can all
/// have. `None`: what comes over a Unix socket.
pub(crate) fn counted_address(address: Option<IpAddr>) -> IpAddr {
    match address {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(IpAddr::V6(address)) if !address.is_loopback() => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        Some(address) => address,
    }
}
