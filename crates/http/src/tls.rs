//! TLS: which authorities are trusted, and the certificate of this client.

use std::{fmt, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, Error as TlsError, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::HttpError;

/// What TLS needs besides the authorities that the system trusts, in PEM. `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificates of further authorities.
    pub authorities: String,
    /// The certificate that this client shows, with those behind it and its key, for servers that require one; empty
    /// without one.
    pub client_certificate: String,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}

/// The cryptography is that of the process, or `ring` if the process has chosen none.
pub(crate) fn client_config(
    options: &TlsOptions,
    trusted: RootCertStore,
) -> Result<ClientConfig, HttpError> {
    let failed = |error: TlsError| HttpError::Client(error.to_string());
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(trusted);
    let mut config = if options.client_certificate.is_empty() {
        builder.with_no_client_auth()
    } else {
        let chain = certificates("the client", &options.client_certificate)?;
        let key = PrivateKeyDer::from_pem_slice(options.client_certificate.as_bytes());
        let key = key.map_err(|error| invalid("the key of the client", &error))?;
        builder.with_client_auth_cert(chain, key).map_err(failed)?
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The further authorities.
pub(crate) fn authorities(options: &TlsOptions) -> Result<RootCertStore, HttpError> {
    let mut store = RootCertStore::empty();
    for authority in certificates("an authority", &options.authorities)? {
        store.add(authority).map_err(|error| invalid("the certificate of an authority", &error))?;
    }
    Ok(store)
}

/// Adds those of the system, without those that rustls cannot parse: some systems have such certificates.
pub(crate) fn add_system(mut store: RootCertStore) -> Result<RootCertStore, HttpError> {
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(HttpError::NotSent(format!(
            "TLS failed: the system has no trusted certificates{reason}; install them, or name a file with \
             certificates in SSL_CERT_FILE"
        )));
    }
    Ok(store)
}

fn certificates(of: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|error| invalid(&format!("the certificate of {of}"), &error))?;
    if read.is_empty() && !pem.is_empty() {
        return Err(HttpError::Client(format!("there is no certificate of {of} in PEM")));
    }
    Ok(read)
}

fn invalid(what: &str, error: &dyn fmt::Display) -> HttpError {
    HttpError::Client(format!("cannot read {what}: {error}"))
}

/// What failed, and what to do about a certificate that is refused.
pub(crate) fn failure(error: &TlsError) -> String {
    let remedy = match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; add the certificate of its authority to those that the system trusts, or name a file with it in \
             SSL_CERT_FILE, and restart"
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; write the host of the URL as it is in the certificate",
        _ => "",
    };
    format!("TLS failed: {error}{remedy}")
}
