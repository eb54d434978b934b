use std::{fmt, net::IpAddr, str::FromStr};

use axum::http::uri::Authority;
use grid_batch_core::Excerpt;
use thiserror::Error;

/// A name or an address of the server in the URLs of its clients, without a port.
///
/// ```
/// use grid_batch_api::HostName;
///
/// let host: HostName = "Grid.example.com".parse()?;
/// assert_eq!(host.to_string(), "grid.example.com");
/// assert!("http://grid.example.com".parse::<HostName>().is_err());
/// # Ok::<(), grid_batch_api::HostNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// Why a text is not a [`HostName`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not a host name or an IP address; write it without a scheme and a port")]
pub struct HostNameError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl HostName {
    /// The host of a URL that has no user, and no port or a valid one.
    pub(super) fn of(authority: &Authority) -> Option<Self> {
        let rest = authority.as_str().strip_prefix(authority.host())?;
        let is_valid = rest.is_empty() || authority.port().is_some() && !rest.contains('@');
        if is_valid { authority.host().parse().ok() } else { None }
    }

    /// Whether the name is this machine's by definition, so that no name server can lead it elsewhere.
    pub(super) fn is_loopback(&self) -> bool {
        self.0 == "localhost" || self.address().is_some_and(|address| address.is_loopback())
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.0.parse().ok()
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let without_brackets = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let name = without_brackets.unwrap_or(text);
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !text.is_empty() && text.len() <= 253 && text.bytes().all(is_valid) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(HostNameError { value: Excerpt::of(text) })
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_a_name_or_an_address_without_a_port() {
        for (text, host) in [
            ("Grid.Example", "grid.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "::1"),
            ("::0001", "::1"),
        ] {
            assert_eq!(text.parse::<HostName>().unwrap().to_string(), host);
        }
        for text in ["", "grid:8080", "http://grid", "grid/", "a b", "user@grid", "*.grid", "grün"]
        {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_names_are_known() {
        let is_loopback = |text: &str| text.parse::<HostName>().unwrap().is_loopback();
        for text in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_loopback(text), "{text}");
        }
        for text in ["localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "localhost."] {
            assert!(!is_loopback(text), "{text}");
        }
    }
}
