//! TLS. The trusted certificates are read from an environment variable, so each test runs in a process
//! of its own.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use futures_util::{SinkExt, StreamExt};
use grid_batch_http::{HttpError, HttpResponse, WebSocketOptions, open_websocket};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::server::{OK, Server, client};

const VARIABLE: &str = "SSL_CERT_FILE";

#[tokio::test]
async fn certificate_of_a_trusted_authority_is_accepted() {
    if !trusts("ca.pem", "tls::certificate_of_a_trusted_authority_is_accepted") {
        return;
    }
    let server = responding().await;
    let client = client();
    let url = format!("https://localhost:{}", server.address.port());
    for _ in 0..2 {
        let HttpResponse { status, body, .. } = client.get(&url, &[]).await.unwrap();
        assert_eq!((status, body.unwrap().as_ref()), (200, b"ok".as_slice()));
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn certificate_of_another_authority_is_refused() {
    if !trusts("other_ca.pem", "tls::certificate_of_another_authority_is_refused") {
        return;
    }
    assert_refused("localhost", "name a file with it in SSL_CERT_FILE").await;
}

#[tokio::test]
async fn certificate_of_another_host_is_refused() {
    if !trusts("ca.pem", "tls::certificate_of_another_host_is_refused") {
        return;
    }
    assert_refused("127.0.0.1", "write the host of the URL as it is in the certificate").await;
}

#[tokio::test]
async fn missing_certificates_are_told() {
    if !trusts("missing.pem", "tls::missing_certificates_are_told") {
        return;
    }
    assert_refused("localhost", "the system has no trusted certificates").await;
}

#[tokio::test]
async fn websocket_opens_over_tls() {
    if !trusts("ca.pem", "tls::websocket_opens_over_tls") {
        return;
    }
    let server = Server::new(|peer| async move {
        let mut socket = accept_async(accept(peer.stream).await.unwrap()).await.unwrap();
        socket.send(Message::text("block")).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    })
    .await;
    let url = format!("wss://localhost:{}", server.address.port());
    let options = WebSocketOptions::default();
    let mut frames = open_websocket(&url, &[], &[], &options).await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "block");
}

/// Whether this process trusts the certificates in the file. If not, runs the test in a process that does.
fn trusts(file: &str, test: &str) -> bool {
    let file = certificate(file);
    if env::var_os(VARIABLE).is_some_and(|trusted| Path::new(&trusted) == file) {
        return true;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(VARIABLE, file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    false
}

async fn assert_refused(host: &str, reason: &str) {
    let server = responding().await;
    let url = format!("https://{host}:{}", server.address.port());
    let error = client().post(&url, &[], "batch").await.unwrap_err();
    assert!(matches!(error, HttpError::NotSent(_)), "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

fn certificate(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/certificates").join(file)
}

/// A server whose certificate is for the host `localhost`, and which sends the same response to each GET.
async fn responding() -> Server {
    Server::new(|peer| async move {
        let Some(mut stream) = accept(peer.stream).await else { return };
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if head.ends_with(b"\r\n\r\n") {
                stream.write_all(OK.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        }
    })
    .await
}

/// `None` if the client refuses the certificate.
async fn accept(stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let chain = vec![CertificateDer::from_pem_file(certificate("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config)).accept(stream).await.ok()
}
