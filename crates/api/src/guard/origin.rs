use std::{fmt, str::FromStr};

use axum::http::uri::Authority;
use grid_batch_core::Excerpt;
use thiserror::Error;

use super::HostName;

/// Where a web page comes from, as a browser tells it: scheme, host, and port.
///
/// ```
/// use grid_batch_api::WebOrigin;
///
/// let origin: WebOrigin = "https://console.example.com:443".parse()?;
/// assert_eq!(origin.to_string(), "https://console.example.com");
/// assert!("https://console.example.com/path".parse::<WebOrigin>().is_err());
/// # Ok::<(), grid_batch_api::WebOriginError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin {
    scheme: Scheme,
    host: HostName,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scheme {
    prefix: &'static str,
    default_port: u16,
}

const SCHEMES: [Scheme; 2] = [
    Scheme { prefix: "http://", default_port: 80 },
    Scheme { prefix: "https://", default_port: 443 },
];

/// Why a text is not a [`WebOrigin`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not an origin; write http:// or https://, a host, and a port if it has one")]
pub struct WebOriginError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl WebOrigin {
    /// Whether the page comes from the server that the request was sent to.
    pub(super) fn is_at(&self, authority: &Authority) -> bool {
        let port = authority.port_u16().unwrap_or(self.scheme.default_port);
        HostName::of(authority).as_ref() == Some(&self.host) && port == self.port
    }
}

impl FromStr for WebOrigin {
    type Err = WebOriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || WebOriginError { value: Excerpt::of(text) };
        let (scheme, rest) = SCHEMES
            .into_iter()
            .find_map(|scheme| Some((scheme, text.strip_prefix(scheme.prefix)?)))
            .ok_or_else(error)?;
        let authority: Authority = rest.parse().map_err(|_| error())?;
        let host = HostName::of(&authority).ok_or_else(error)?;
        let port = authority.port_u16().unwrap_or(scheme.default_port);
        Ok(Self { scheme, host, port })
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.prefix)?;
        match self.host.address() {
            Some(address) if address.is_ipv6() => write!(f, "[{address}]")?,
            _ => write!(f, "{}", self.host)?,
        }
        if self.port == self.scheme.default_port { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_is_scheme_host_and_port() {
        for (text, origin) in [
            ("http://Grid.example:80", "http://grid.example"),
            ("https://grid.example:80", "https://grid.example:80"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ] {
            assert_eq!(text.parse::<WebOrigin>().unwrap().to_string(), origin);
        }
        for text in [
            "null",
            "",
            "grid.example",
            "http://",
            "http://grid/",
            "http://grid/path",
            "http://user@grid",
            "http://grid:",
            "http://grid:99999",
            "ftp://grid",
            "http://*",
        ] {
            assert!(text.parse::<WebOrigin>().is_err(), "{text}");
        }
    }

    #[test]
    fn origin_is_at_a_host_with_the_same_port() {
        for (origin, host, expected) in [
            ("http://localhost:8080", "localhost:8080", true),
            ("http://localhost:3000", "localhost:8080", false),
            ("http://127.0.0.1:8080", "localhost:8080", false),
            ("http://grid.example", "grid.example", true),
            ("https://grid.example", "grid.example:443", true),
            ("https://grid.example", "grid.example:80", false),
        ] {
            let (origin, host) = (origin.parse::<WebOrigin>().unwrap(), host.parse().unwrap());
            assert_eq!(origin.is_at(&host), expected, "{origin} {host}");
        }
    }
}
