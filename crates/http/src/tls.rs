//! TLS, with the certificates that the system trusts.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::ServerName,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::HttpError;

/// The configuration that all connections share. The certificates are read for the first of them.
static CONFIG: Mutex<Option<Arc<ClientConfig>>> = Mutex::new(None);

/// Encrypts a connection to this host.
pub(crate) async fn start_tls(
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, HttpError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        HttpError::InvalidRequest("the host is not a valid TLS server name".to_owned())
    })?;
    let connector = TlsConnector::from(config()?);
    connector
        .connect(name, stream)
        .await
        .map_err(|error| HttpError::NotSent(format!("TLS failed: {error}")))
}

fn config() -> Result<Arc<ClientConfig>, HttpError> {
    let mut config = CONFIG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(config) = &*config {
        return Ok(config.clone());
    }
    let new = Arc::new(new_config()?);
    *config = Some(new.clone());
    Ok(new)
}

/// The cryptography is that of the process, or `ring` if the process has chosen none.
fn new_config() -> Result<ClientConfig, HttpError> {
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let failed = |error: rustls::Error| HttpError::NotSent(format!("TLS failed: {error}"));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(trusted_certificates()?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Certificates that rustls cannot parse are left out: some systems have such certificates.
fn trusted_certificates() -> Result<RootCertStore, HttpError> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        let error = format!("TLS failed: the system has no trusted certificates{reason}");
        return Err(HttpError::NotSent(error));
    }
    Ok(store)
}
