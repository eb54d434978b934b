//! TLS in front of a server that has none.

use std::{net::SocketAddr, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

use super::certificates::Issued;

/// Passes what clients send over TLS to a server, and its answers back, until the value is dropped.
pub struct TlsFront {
    pub address: SocketAddr,
    _runtime: Runtime,
}

impl TlsFront {
    pub fn start(server: SocketAddr, shown: &Issued) -> Self {
        let acceptor = acceptor(shown);
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that refuses the certificate disconnects.
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, _runtime: runtime }
    }
}

fn acceptor(shown: &Issued) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(&shown.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&shown.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
