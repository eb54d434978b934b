use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    str::FromStr,
};

use thiserror::Error;

use super::{ApiListener, TlsCertificate, UnixSocket};

/// One address of the HTTP interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// TCP without encryption.
    Tcp(SocketAddr),
    /// TCP with TLS.
    Tls(SocketAddr),
    /// A Unix socket at this file.
    Unix(PathBuf),
}

/// A text is no address of the HTTP interface: the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ListenAddressError(&'static str);

impl ListenAddress {
    /// The IP address, if it has one.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Tls(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Opens it, with this certificate if it has TLS. A Unix socket gets these permissions.
    pub fn open(
        &self,
        certificate: Option<&TlsCertificate>,
        socket_mode: u32,
    ) -> io::Result<ApiListener> {
        match (self, certificate) {
            (Self::Tls(at), Some(certificate)) => {
                Ok(ApiListener::tls(TcpListener::bind(at)?, certificate.clone()))
            }
            (Self::Tcp(at) | Self::Tls(at), _) => Ok(ApiListener::tcp(TcpListener::bind(at)?)),
            (Self::Unix(path), _) => Ok(ApiListener::unix(UnixSocket::bind(path, socket_mode)?)),
        }
    }

    /// Whether other machines reach it.
    pub fn is_reached_from_elsewhere(&self) -> bool {
        self.socket_addr().is_some_and(|address| !address.ip().is_loopback())
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Tls(address) => write!(f, "tls:{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                path if path.starts_with('/') => Ok(Self::Unix(PathBuf::from(path))),
                _ => Err(ListenAddressError("after unix: it must be the absolute path of a file")),
            };
        }
        let (text, is_encrypted) = match text.strip_prefix("tls:") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let address = text.parse().map_err(|_| {
            ListenAddressError(
                "it must be an IP address and a port from 0 to 65535, such as \"127.0.0.1:8080\", with \
                 tls: before it for TLS; or unix: and the path of a file",
            )
        })?;
        Ok(if is_encrypted { Self::Tls(address) } else { Self::Tcp(address) })
    }
}
