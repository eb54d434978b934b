//! TLS: which authorities are trusted, and the certificate of this client.

use std::{fmt, fs, path::PathBuf, sync::Arc};

use grid_batch_support::read_secret;
use rustls::{
    CertificateError, ClientConfig, Error as TlsError, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::HttpError;

/// What TLS uses besides the authorities that the system trusts. It is read when a client is created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of further authorities.
    pub authorities: Vec<Pem>,
    /// The certificate that this client shows to servers that require one, with the certificates behind it and its key.
    pub client_certificate: Option<Pem>,
}

/// Certificates and keys in PEM format. `Debug` does not show the text.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// The text itself.
    Text(String),
    /// The file that contains the text. If it contains a key, other users must not be able to use it.
    File(PathBuf),
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(file) => f.debug_tuple("File").field(file).finish(),
        }
    }
}

/// What the options contain, once it is read.
pub(crate) struct TlsParts {
    authorities: RootCertStore,
    client: Option<ClientCertificate>,
}

struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl TlsParts {
    pub(crate) fn read(options: &TlsOptions) -> Result<Self, HttpError> {
        let mut authorities = RootCertStore::empty();
        for pem in &options.authorities {
            const WHAT: &str = "certificate of an authority";
            let text = match pem {
                Pem::Text(text) => text.clone(),
                Pem::File(file) => fs::read_to_string(file)
                    .map_err(|error| unusable(WHAT, &format!("{}: {error}", file.display())))?,
            };
            for certificate in certificates(WHAT, &text)? {
                authorities.add(certificate).map_err(|error| unusable(WHAT, &error))?;
            }
        }
        let client = options.client_certificate.as_ref().map(ClientCertificate::read);
        let parts = Self { authorities, client: client.transpose()? };
        // The first request would be too late to learn that the key is not that of the certificate.
        parts.config_with(RootCertStore::empty())?;
        Ok(parts)
    }

    /// The configuration of connections, which trusts the authorities of the system only if that is requested: most
    /// programs open no connection with TLS, and reading them takes time.
    pub(crate) async fn config(&self, with_system: bool) -> Result<ClientConfig, HttpError> {
        let mut trusted = self.authorities.clone();
        if with_system {
            match SYSTEM.get_or_try_init(read_system).await {
                Ok(system) => trusted.extend(system.roots.iter().cloned()),
                Err(error) if trusted.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        self.config_with(trusted)
    }

    /// The cryptography is that of the process, or `ring` if the process has chosen none.
    fn config_with(&self, trusted: RootCertStore) -> Result<ClientConfig, HttpError> {
        let failed = |error: TlsError| HttpError::Client(error.to_string());
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_root_certificates(trusted);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { chain, key }) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key()).map_err(failed)?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ClientCertificate {
    fn read(pem: &Pem) -> Result<Self, HttpError> {
        const WHAT: &str = "certificate of the client";
        let text = match pem {
            Pem::Text(text) => text.clone(),
            Pem::File(file) => {
                read_secret(WHAT, file).map_err(|error| HttpError::Client(error.to_string()))?
            }
        };
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes());
        let key = key.map_err(|error| unusable("key of the client", &error))?;
        Ok(Self { chain: certificates(WHAT, &text)?, key })
    }
}

/// The authorities that the system trusts. They are read for the first connection with TLS.
static SYSTEM: OnceCell<RootCertStore> = OnceCell::const_new();

/// Reading the certificates blocks, so it has a thread of its own. If it fails, the next connection tries again.
/// Certificates that rustls cannot parse are left out: some systems have such certificates.
async fn read_system() -> Result<RootCertStore, HttpError> {
    let not_sent = |reason: &str| HttpError::NotSent(format!("TLS failed: {reason}"));
    let found = spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = found.map_err(|error| not_sent(&error.to_string()))?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let reason = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(not_sent(&format!(
            "the system has no trusted certificates{reason}; install them, or name a file with certificates in \
             SSL_CERT_FILE"
        )));
    }
    Ok(store)
}

fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let read = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    match read {
        Ok(read) if read.is_empty() => Err(unusable(what, &"there is none in PEM format")),
        Ok(read) => Ok(read),
        Err(error) => Err(unusable(what, &error)),
    }
}

fn unusable(what: &str, error: &dyn fmt::Display) -> HttpError {
    HttpError::Client(format!("cannot read the {what}: {error}"))
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
        TlsError::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "; it is the certificate of an authority, as `openssl req -x509` makes it: make one for the server, with \
             -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST"
        }
        _ => "",
    };
    format!("TLS failed: {error}{remedy}")
}
