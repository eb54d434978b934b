//! TLS. The trusted certificates are read from an environment variable, so each test runs in a process
//! of its own.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use futures_util::{SinkExt, StreamExt};
use grid_batch_http::{
    HttpClient, HttpError, HttpOptions, HttpResponse, Pem, TlsOptions, WebSocketOptions,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::server::{OK, Server, client};

const VARIABLE: &str = "SSL_CERT_FILE";
/// A certificate of `ca.pem` for `localhost`.
const SERVER: &str = "server.pem";

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
    let mut frames = client().open_websocket(&url, &[], &[], &options).await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap(), "block");
}

/// Options that trust the authority in this file besides those of the system.
pub fn trusting(file: &str) -> HttpOptions {
    let authorities = vec![Pem::File(certificate(file))];
    let tls = TlsOptions { authorities, ..TlsOptions::default() };
    HttpOptions { tls, ..HttpOptions::default() }
}

#[tokio::test]
async fn certificate_of_a_further_authority_is_accepted() {
    let server = responding().await;
    let url = format!("https://localhost:{}", server.address.port());
    let client = |file| HttpClient::new(&trusting(file)).unwrap();
    assert_eq!(client("ca.pem").get(&url, &[]).await.unwrap().status, 200);
    let error = client("other_ca.pem").get(&url, &[]).await.unwrap_err();
    assert!(matches!(error, HttpError::NotSent(_)), "{error}");
}

#[tokio::test]
async fn server_that_requires_a_certificate_gets_it() {
    let authority = CertificateDer::from_pem_file(certificate("client_ca.pem")).unwrap();
    let mut store = RootCertStore::empty();
    store.add(authority).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider);
    let server = responding_to(verifier.build().unwrap(), SERVER).await;
    let url = format!("https://localhost:{}", server.address.port());

    let mut options = trusting("ca.pem");
    let result = HttpClient::new(&options).unwrap().post(&url, &[], "batch").await;
    assert!(result.is_err_and(|error| error.is_no_answer()));

    let shown = fs::read_to_string(certificate("client.pem")).unwrap();
    options.tls.client_certificate = Some(Pem::Text(shown));
    let client = HttpClient::new(&options).unwrap();
    assert_eq!(client.get(&url, &[]).await.unwrap().status, 200);
    for shown in [format!("{options:?}"), format!("{client:?}")] {
        assert!(!shown.contains("BEGIN"), "{shown}");
    }
}

#[test]
fn unusable_certificates_are_refused() {
    let refused = |tls: TlsOptions| {
        let error = HttpClient::new(&HttpOptions { tls, ..HttpOptions::default() }).unwrap_err();
        assert!(matches!(error, HttpError::Client(_)), "{error}");
        error.to_string()
    };
    let authority = |pem| refused(TlsOptions { authorities: vec![pem], client_certificate: None });
    let client =
        |pem| refused(TlsOptions { authorities: Vec::new(), client_certificate: Some(pem) });
    let none = "cannot read the certificate of an authority: there is none";
    assert!(authority(Pem::Text("no PEM".to_owned())).contains(none));
    assert!(authority(Pem::File(certificate("missing.pem"))).contains("missing.pem: "));
    let without_key = fs::read_to_string(certificate("ca.pem")).unwrap();
    assert!(client(Pem::Text(without_key)).contains("cannot read the key of the client"));
    assert!(client(Pem::File(certificate("missing.pem"))).contains("missing.pem"));
}

#[cfg(unix)]
#[test]
fn key_that_other_users_can_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("client.pem");
    fs::copy(certificate("client.pem"), &file).unwrap();
    let client = |mode| {
        fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let client_certificate = Some(Pem::File(file.clone()));
        let tls = TlsOptions { client_certificate, ..TlsOptions::default() };
        HttpClient::new(&HttpOptions { tls, ..HttpOptions::default() })
    };
    assert!(client(0o644).unwrap_err().to_string().contains("chmod 600"));
    client(0o600).unwrap();
}

/// `openssl req -x509` makes such a certificate without further options.
#[tokio::test]
async fn certificate_of_an_authority_is_no_certificate_of_a_server() {
    let server = responding_to(Arc::new(NoClientAuth), "self_signed.pem").await;
    let url = format!("https://localhost:{}", server.address.port());
    let client = HttpClient::new(&trusting("self_signed.pem")).unwrap();
    let error = client.get(&url, &[]).await.unwrap_err().to_string();
    assert!(error.contains("basicConstraints=critical,CA:FALSE"), "{error}");
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
pub async fn responding() -> Server {
    responding_to(Arc::new(NoClientAuth), SERVER).await
}

/// The same with this certificate, for clients that the verifier accepts.
async fn responding_to(clients: Arc<dyn ClientCertVerifier>, file: &'static str) -> Server {
    Server::new(move |peer| {
        let clients = Arc::clone(&clients);
        async move {
            let Some(mut stream) = accept_with(peer.stream, clients, file).await else { return };
            let mut head = Vec::new();
            while let Ok(byte) = stream.read_u8().await {
                head.push(byte);
                if head.ends_with(b"\r\n\r\n") {
                    stream.write_all(OK.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                }
            }
        }
    })
    .await
}

/// `None` if the client refuses the certificate.
async fn accept(stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    accept_with(stream, Arc::new(NoClientAuth), SERVER).await
}

async fn accept_with(
    stream: TcpStream,
    clients: Arc<dyn ClientCertVerifier>,
    file: &str,
) -> Option<TlsStream<TcpStream>> {
    let chain = vec![CertificateDer::from_pem_file(certificate(file)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config)).accept(stream).await.ok()
}
