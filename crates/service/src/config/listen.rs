use std::{fmt, net::SocketAddr, path::PathBuf};

use grid_batch_api::{ForwardedHeaders, Network, TrustedProxies};

use grid_batch_settings::{ConfigError, FilePath, SettingValue, SettingValues};

/// Where the HTTP interface listens.
#[derive(Debug, Clone)]
pub struct ListenConfig {
    /// At least one address.
    pub addresses: Vec<ListenAddress>,
    /// The certificate and the key of the addresses with TLS.
    pub tls: Option<TlsFiles>,
    /// The permissions of Unix sockets.
    pub socket_mode: u32,
    /// The proxies whose headers about clients count.
    pub proxies: TrustedProxies,
}

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

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl ListenAddress {
    /// The IP address, if it has one.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) | Self::Tls(address) => Some(*address),
            Self::Unix(_) => None,
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

impl SettingValue for ListenAddress {
    fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                path if path.starts_with('/') => Ok(Self::Unix(PathBuf::from(path))),
                _ => Err("after unix: it must be the absolute path of a file".to_owned()),
            };
        }
        let (text, is_encrypted) = match text.strip_prefix("tls:") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let address = text.parse().map_err(|_| {
            "it must be an IP address and a port from 0 to 65535, such as \"127.0.0.1:8080\", with \
             tls: before it for TLS; or unix: and the path of a file"
                .to_owned()
        })?;
        Ok(if is_encrypted { Self::Tls(address) } else { Self::Tcp(address) })
    }
}

fn parse_headers(text: &str) -> Result<ForwardedHeaders, String> {
    match text {
        "x-forwarded" => Ok(ForwardedHeaders::XForwarded),
        "forwarded" => Ok(ForwardedHeaders::Forwarded),
        _ => Err("it must be \"x-forwarded\" or \"forwarded\"".to_owned()),
    }
}

/// The permissions of a file, in octal digits.
struct FileMode(u32);

impl SettingValue for FileMode {
    fn parse(text: &str) -> Result<Self, String> {
        let mode =
            u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777 && text.len() <= 4);
        mode.map(Self).ok_or_else(|| "it must be octal digits, such as \"0600\"".to_owned())
    }
}

impl ListenConfig {
    pub(super) fn from_settings(settings: &SettingValues) -> Result<Self, ConfigError> {
        let config = Self {
            addresses: settings.get("listen")?,
            tls: tls_files(settings)?,
            socket_mode: settings.get::<FileMode>("http.socket_mode")?.0,
            proxies: TrustedProxies {
                networks: settings.get_list::<Network>("http.trusted_proxies")?,
                headers: settings.get_with("http.forwarded_headers", parse_headers)?,
            },
        };
        config.check(settings)?;
        Ok(config)
    }

    fn check(&self, settings: &SettingValues) -> Result<(), ConfigError> {
        let conflict = |name: &str, rule: &str| Err(settings.conflict(name, rule.to_owned()));
        if self.addresses.is_empty() {
            return conflict("listen", "listen is empty; give at least one address");
        }
        let has_tls = self.addresses.iter().any(|address| matches!(address, ListenAddress::Tls(_)));
        match (has_tls, &self.tls) {
            (true, None) => conflict(
                "listen",
                "an address with tls: needs http.tls_certificate and http.tls_key",
            ),
            (false, Some(_)) => conflict(
                "http.tls_certificate",
                "http.tls_certificate has no effect, because no address of listen begins with tls:",
            ),
            _ => Ok(()),
        }
    }
}

fn tls_files(settings: &SettingValues) -> Result<Option<TlsFiles>, ConfigError> {
    let certificate = settings.get::<FilePath>("http.tls_certificate")?.0;
    let key = settings.get::<FilePath>("http.tls_key")?.0;
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        (certificate, _) => {
            let given = if certificate.is_some() { "http.tls_certificate" } else { "http.tls_key" };
            let rule = "http.tls_certificate and http.tls_key must both be given, or neither";
            Err(settings.conflict(given, rule.to_owned()))
        }
    }
}
