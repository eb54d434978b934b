//! Opens the listeners of the HTTP interface.

use std::net::{SocketAddr, TcpListener};

use grid_batch_api::{AccessMode, ApiListener, TlsCertificate, UnixSocket};
use log::warn;

use super::StartError;
use crate::{Config, ListenAddress, private_file::is_open_to_others};

/// Opens all listeners.
pub(super) fn open(config: &Config) -> Result<Vec<ApiListener>, StartError> {
    let certificate = certificate(config)?;
    warn_of_exposed(config);
    config
        .listen
        .addresses
        .iter()
        .map(|address| {
            let failed = |source| StartError::Listen { address: address.to_string(), source };
            let listener = match (address, &certificate) {
                (ListenAddress::Tls(at), Some(certificate)) => {
                    TcpListener::bind(at).map(|tcp| ApiListener::tls(tcp, certificate.clone()))
                }
                (ListenAddress::Tcp(at) | ListenAddress::Tls(at), _) => {
                    TcpListener::bind(at).map(ApiListener::tcp)
                }
                (ListenAddress::Unix(path), _) => {
                    UnixSocket::bind(path, config.listen.socket_mode).map(ApiListener::unix)
                }
            };
            listener.map_err(failed)
        })
        .collect()
}

fn certificate(config: &Config) -> Result<Option<TlsCertificate>, StartError> {
    let Some(files) = &config.listen.tls else { return Ok(None) };
    if is_open_to_others(&files.key) {
        warn!(file:% = files.key.display(); "other users can read the key; restrict it with chmod 600");
    }
    Ok(Some(TlsCertificate::read(files.certificate.clone(), files.key.clone())?))
}

fn warn_of_exposed(config: &Config) {
    let exposed = |address: &&ListenAddress| address.is_reached_from_elsewhere();
    for address in config.listen.addresses.iter().filter(exposed) {
        if config.access.options.mode != AccessMode::Tokens {
            warn!(address:%; "everyone who reaches the address may do everything (access.allow_anonymous)");
        } else if matches!(address, ListenAddress::Tcp(_))
            && config.listen.proxies.networks.is_empty()
        {
            warn!(address:%; "tokens are sent to the address without encryption; use tls: or a proxy");
        }
    }
}

/// The URL of the first listener.
pub(super) fn url(config: &Config, local_addr: SocketAddr) -> String {
    let addresses = &config.listen.addresses;
    match addresses.iter().find(|address| address.socket_addr().is_some()) {
        Some(ListenAddress::Tls(_)) => format!("https://{local_addr}"),
        Some(_) => format!("http://{local_addr}"),
        None => addresses.first().map_or_else(String::new, ToString::to_string),
    }
}
