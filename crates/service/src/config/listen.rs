use std::path::PathBuf;

use grid_batch_api::{ListenAddress, Network, TrustedProxies};
use grid_batch_settings::{ConfigError, FileMode, FilePath, SettingValues};

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

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl ListenConfig {
    pub(super) fn from_settings(settings: &SettingValues) -> Result<Self, ConfigError> {
        let config = Self {
            addresses: settings.get_list("listen")?,
            tls: tls_files(settings)?,
            socket_mode: settings.get::<FileMode>("http.socket_mode")?.0,
            proxies: TrustedProxies {
                networks: settings.get_list::<Network>("http.trusted_proxies")?,
                headers: settings.get_parsed("http.forwarded_headers")?,
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
