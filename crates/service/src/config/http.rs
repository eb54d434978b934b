use std::path::PathBuf;

use grid_batch_api::{
    ForwardedHeaders, HostName, ListenAddress, Network, TrustedProxies, WebOrigin,
};
use grid_batch_settings::{ConfigError, FileMode, SettingValues, settings};

use super::{Config, GeneralConfig};

settings! {
    /// How the HTTP interface listens, and which requests it answers.
    #[derive(Debug, Clone)]
    pub struct HttpConfig in "http." {
        /// Host names in the URLs of clients, without a port, besides localhost, loopback addresses and the address of
        /// listen; requests to other hosts are refused, because a web page could have made its own name lead here.
        ///
        /// If a proxy passes on the host that its clients use, list that name.
        pub allowed_hosts: Vec<HostName> = list("").common() => SettingValues::get_list,
        /// Origins of web pages that may use the server, each as https://HOST or https://HOST:PORT; requests of pages
        /// of other sites are refused.
        ///
        /// If a proxy serves pages that use the server, list their origins, and no others.
        pub allowed_origins: Vec<WebOrigin> = list("") => SettingValues::get_list,
        /// Have a node answer the requests of the ledger's own clients that do not concern batches stored here, such as
        /// those for its state, so that clients need one URL.
        ///
        /// Switch it off if the clients of this server may not read from the ledger.
        pub pass_through: bool = switch("true").equal(),
        /// File with the certificate of the addresses with TLS, and those of the authorities between it and the root,
        /// in PEM format. It is read again when it changes.
        ///
        /// Set it to listen with TLS without a proxy in front. A changed file that cannot be used leaves the
        /// certificate as it is, with a warning.
        pub tls_certificate: Option<PathBuf> = text(""),
        /// File with the key of http.tls_certificate, in PEM format.
        ///
        /// Only the user of the server should be able to read the file.
        pub tls_key: Option<PathBuf> = text(""),
        /// Permissions of Unix sockets, in octal digits.
        ///
        /// Use 0660 if a proxy of the same group connects to the socket.
        pub socket_mode: FileMode = text("0600"),
        /// Proxies whose headers about their clients count, as IP addresses, networks such as 10.0.0.0/8, or unix for
        /// everyone who reaches a Unix socket. The headers of others are ignored.
        ///
        /// List the proxies in front, so that limits of addresses count their clients and links have their host. No one
        /// else must be able to connect from these addresses.
        pub trusted_proxies: Vec<Network> = list("") => SettingValues::get_list,
        /// The headers that trusted proxies set: x-forwarded for X-Forwarded-For, X-Forwarded-Proto and
        /// X-Forwarded-Host, or forwarded for Forwarded. The others are ignored.
        ///
        /// Choose those that the proxy sets itself: clients can send the others through it.
        pub forwarded_headers: ForwardedHeaders = text("x-forwarded") => SettingValues::get_parsed,
    }
}

impl HttpConfig {
    /// The proxies whose headers about clients count.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        TrustedProxies { networks: self.trusted_proxies.clone(), headers: self.forwarded_headers }
    }
}

impl Config {
    pub(super) fn check_listen(&self) -> Result<(), ConfigError> {
        let (http, addresses) = (&self.http, &self.general.listen);
        let has_tls = addresses.iter().any(|address| matches!(address, ListenAddress::Tls(_)));
        let (setting, rule) = match (&http.tls_certificate, &http.tls_key) {
            (Some(_), None) => (HttpConfig::tls_certificate, BOTH),
            (None, Some(_)) => (HttpConfig::tls_key, BOTH),
            _ if addresses.is_empty() => {
                (GeneralConfig::listen, "listen is empty; give at least one address")
            }
            (None, None) if has_tls => (
                GeneralConfig::listen,
                "an address with tls: needs http.tls_certificate and http.tls_key",
            ),
            (Some(_), Some(_)) if !has_tls => (
                HttpConfig::tls_certificate,
                "http.tls_certificate has no effect, because no address of listen begins with tls:",
            ),
            _ => return Ok(()),
        };
        Err(self.settings.conflict(&setting, rule.to_owned()))
    }
}

const BOTH: &str = "http.tls_certificate and http.tls_key must both be given, or neither";
