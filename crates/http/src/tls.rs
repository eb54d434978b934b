/// Makes `ring` the process's cryptography provider, unless the process has one already.
pub(crate) fn install_crypto_provider() {
    // An error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
