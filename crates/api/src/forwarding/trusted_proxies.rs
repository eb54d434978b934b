use std::{fmt, net::IpAddr, str::FromStr};

use grid_batch_core::Excerpt;
use thiserror::Error;

/// The proxies whose headers about their clients count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Where they are.
    pub networks: Vec<Network>,
    /// The headers that they set. A client can send the others through them.
    pub headers: ForwardedHeaders,
}

/// The headers in which a proxy tells about its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// A text is not the name of [`ForwardedHeaders`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it must be \"x-forwarded\" or \"forwarded\"")]
pub struct ForwardedHeadersError;

impl FromStr for ForwardedHeaders {
    type Err = ForwardedHeadersError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "x-forwarded" => Ok(Self::XForwarded),
            "forwarded" => Ok(Self::Forwarded),
            _ => Err(ForwardedHeadersError),
        }
    }
}

/// Addresses that begin with the same bits, or the other ends of Unix sockets.
///
/// ```
/// use grid_batch_api::Network;
///
/// for text in ["10.0.0.0/8", "192.0.2.7", "fd00::/8", "unix"] {
///     assert_eq!(text.parse::<Network>()?.to_string(), text);
/// }
/// assert!("10.0.0.0/33".parse::<Network>().is_err());
/// # Ok::<(), grid_batch_api::NetworkError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unix,
    Addresses { first: IpAddr, bits: u8 },
}

/// Why a text is not a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not a network; write an IP address, a network such as 10.0.0.0/8, or unix")]
pub struct NetworkError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl TrustedProxies {
    /// Whether the other end of a connection is one of them. `None`: it is connected to a Unix socket.
    pub(super) fn trusts(&self, address: Option<IpAddr>) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }
}

impl Network {
    fn contains(&self, address: Option<IpAddr>) -> bool {
        match (self.0, address) {
            (Kind::Unix, None) => true,
            (Kind::Addresses { first, bits }, Some(address)) => {
                has_prefix(address.to_canonical(), first, bits)
            }
            _ => false,
        }
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn has_prefix(address: IpAddr, first: IpAddr, bits: u8) -> bool {
    let as_number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    let shift = u32::from(width(first) - bits);
    let prefix = |address| as_number(address).checked_shr(shift).unwrap_or(0);
    address.is_ipv4() == first.is_ipv4() && prefix(address) == prefix(first)
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unix" {
            return Ok(Self(Kind::Unix));
        }
        let error = || NetworkError { value: Excerpt::of(text) };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(|_| error())?;
        let bits = match bits {
            Some(bits) => {
                bits.parse().ok().filter(|bits| *bits <= width(first)).ok_or_else(error)?
            }
            None => width(first),
        };
        Ok(Self(Kind::Addresses { first, bits }))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Unix => f.write_str("unix"),
            Kind::Addresses { first, bits } if bits == width(first) => first.fmt(f),
            Kind::Addresses { first, bits } => write!(f, "{first}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_has_the_addresses_with_its_bits() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "192.0.2.7", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("unix", "127.0.0.1", false),
        ] {
            let (network, address) =
                (network.parse::<Network>().unwrap(), address.parse().unwrap());
            assert_eq!(network.contains(Some(address)), expected, "{network} {address}");
        }
        assert!("unix".parse::<Network>().unwrap().contains(None));
        assert!(!"0.0.0.0/0".parse::<Network>().unwrap().contains(None));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
