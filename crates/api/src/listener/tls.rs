//! TLS with a certificate and a key from files, which are read again when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::SystemTime,
};

use grid_batch_support::lock;
use log::{info, warn};
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// The certificate of a listener. Clones share it.
#[derive(Clone)]
pub struct TlsCertificate(Arc<Shared>);

struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    versions: Mutex<Versions>,
    config: RwLock<Arc<ServerConfig>>,
}

/// By what a change of a file is seen: when it was written, and its length.
type Version = Option<(SystemTime, u64)>;
type Versions = [Version; 2];

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file has something else.
    #[error("{} has no {what} in PEM format", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What it must have.
        what: &'static str,
    },
    /// The key does not belong to the certificate, or neither is supported.
    #[error("the certificate in {} cannot be used with the key", file.display())]
    Pair {
        /// The file with the certificate.
        file: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
}

impl TlsCertificate {
    /// Reads a certificate, with those of the authorities between it and the root, and its key.
    pub fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, TlsError> {
        let versions = [version(&certificate), version(&key)];
        let config = read(&certificate, &key)?;
        Ok(Self(Arc::new(Shared {
            certificate,
            key,
            versions: Mutex::new(versions),
            config: RwLock::new(Arc::new(config)),
        })))
    }

    /// Reads the files again if they have changed. It blocks. If they cannot be used, the certificate stays as
    /// it is, and the next change is tried.
    pub(crate) fn read_if_changed(&self) {
        let Shared { certificate, key, versions, config } = &*self.0;
        let present = [version(certificate), version(key)];
        let mut versions = lock(versions);
        if *versions == present {
            return;
        }
        *versions = present;
        let certificate = certificate.display().to_string();
        match read(&self.0.certificate, key) {
            Ok(new) => {
                *config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                info!(certificate = certificate.as_str(); "the certificate was read again");
            }
            Err(error) => {
                warn!(certificate = certificate.as_str(), error:%;
                    "a changed certificate cannot be used; the one before stays");
            }
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let config = self.0.config.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(Arc::clone(&config))
    }
}

/// Without the key.
impl std::fmt::Debug for TlsCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TlsCertificate({})", self.0.certificate.display())
    }
}

fn version(file: &Path) -> Version {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| refused(certificate, "certificate", error))?;
    if chain.is_empty() {
        return Err(refused(certificate, "certificate", pem::Error::NoItemsFound));
    }
    let private_key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| refused(key, "private key", error))?;
    let pair = |source| TlsError::Pair { file: certificate.to_owned(), source };
    // The cryptography is that of the process, or `ring` if the process has chosen none.
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private_key)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The error does not show what the file has.
fn refused(file: &Path, what: &'static str, error: pem::Error) -> TlsError {
    let file = file.to_owned();
    match error {
        pem::Error::Io(source) => TlsError::Read { file, source },
        _ => TlsError::Content { file, what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATES: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../http/tests/http/certificates");

    fn copy(directory: &Path) -> [PathBuf; 2] {
        ["server.pem", "server.key"].map(|name| {
            let file = directory.join(name);
            fs::copy(Path::new(CERTIFICATES).join(name), &file).unwrap();
            file
        })
    }

    #[test]
    fn changed_certificate_is_read_and_an_unusable_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = copy(directory.path());
        let pem = fs::read_to_string(&certificate).unwrap();
        let served = TlsCertificate::read(certificate.clone(), key).unwrap();
        let config = || Arc::clone(&served.0.config.read().unwrap());
        let first = config();
        served.read_if_changed();
        assert!(Arc::ptr_eq(&first, &config()), "nothing has changed");

        fs::write(&certificate, "half a certifica").unwrap();
        served.read_if_changed();
        assert!(Arc::ptr_eq(&first, &config()), "it cannot be used");

        // The length differs, so that the change is seen whatever the time of the file is.
        fs::write(&certificate, format!("{pem}\n")).unwrap();
        served.read_if_changed();
        assert!(!Arc::ptr_eq(&first, &config()), "it is read again");
    }
}
