//! TLS, with the certificates that the system trusts.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::ServerName,
};
use tokio::{net::TcpStream, sync::OnceCell, task::spawn_blocking};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::HttpError;

/// The configuration that all connections share. The certificates are read for the first of them.
static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// Encrypts a connection to this host.
pub(crate) async fn start_tls(
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, HttpError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        HttpError::InvalidRequest("the host is not a valid TLS server name".to_owned())
    })?;
    let connector = TlsConnector::from(config().await?);
    connector
        .connect(name, stream)
        .await
        .map_err(|error| HttpError::NotSent(format!("TLS failed: {error}{}", remedy(&error))))
}

/// What to do about a certificate that is refused.
fn remedy(error: &io::Error) -> &'static str {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(error)) = error else { return "" };
    match error {
        CertificateError::UnknownIssuer => {
            "; add the certificate of its authority to those that the system trusts, or name a file with \
             it in SSL_CERT_FILE, and restart"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "; write the host of the URL as it is in the certificate"
        }
        _ => "",
    }
}

/// Reading the certificates blocks, so it has a thread of its own. If it fails, the next connection tries again.
async fn config() -> Result<Arc<ClientConfig>, HttpError> {
    let read = || async {
        let config = spawn_blocking(new_config).await;
        let config =
            config.map_err(|error| HttpError::NotSent(format!("TLS failed: {error}")))??;
        Ok(Arc::new(config))
    };
    CONFIG.get_or_try_init(read).await.cloned()
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
        let error = format!(
            "TLS failed: the system has no trusted certificates{reason}; install \
             them, or name a file with certificates in SSL_CERT_FILE"
        );
        return Err(HttpError::NotSent(error));
    }
    Ok(store)
}
