/// The process has one source of cryptography; where nobody chose one before, it is `ring`.
pub(crate) fn choose_cryptography() {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
