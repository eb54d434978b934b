//! TLS and Unix sockets.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use grid_batch_api::{
    AccessControl, AccessMode, AccessOptions, ApiBuilder, ApiListener, ApiOptions, RunningApi,
    ShutdownHandle, TlsCertificate, UnixSocket,
};
use grid_batch_core::SystemClock;
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../http/tests/http/certificates");

fn certificate() -> TlsCertificate {
    let [certificate, key] =
        ["server.pem", "server.key"].map(|name| Path::new(CERTIFICATES).join(name));
    TlsCertificate::read(certificate, key).unwrap()
}

fn tcp() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn builder() -> ApiBuilder {
    ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(MockBatchQueryStore::new()))
}

fn serve(builder: ApiBuilder, listeners: Vec<ApiListener>) -> RunningApi {
    builder.build().unwrap().serve_all(listeners).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn ask(stream: &mut (impl Read + Write), path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    // A peer that closes without an end of TLS has sent everything before.
    let _ = stream.read_to_string(&mut response);
    response
}

fn start_tls(address: SocketAddr, authority: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(Path::new(CERTIFICATES).join(authority)).unwrap())
        .unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    StreamOwned::new(connection, connect(address))
}

#[test]
fn several_listeners_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("http.sock");
    let ((plain, plain_address), (tls, tls_address)) = (tcp(), tcp());
    let listeners = vec![
        ApiListener::unix(UnixSocket::bind(&path, 0o600).unwrap()),
        ApiListener::tls(tls, certificate()),
        ApiListener::tcp(plain),
    ];
    let api = serve(builder(), listeners);
    assert_eq!(api.local_addr(), tls_address, "the first that has an address");
    for _ in 0..2 {
        for response in [
            ask(&mut UnixStream::connect(&path).unwrap(), "/health"),
            ask(&mut connect(plain_address), "/health"),
            ask(&mut start_tls(tls_address, "ca.pem"), "/health"),
        ] {
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        }
    }
    api.wait_for_shutdown().unwrap();
    assert!(!path.exists(), "the socket is removed");
}

#[test]
fn unix_socket_is_local_and_needs_a_token_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("http.sock");
    let options = AccessOptions { mode: AccessMode::Tokens, ..AccessOptions::default() };
    let access = AccessControl::new(options, Arc::new(SystemClock));
    let socket = ApiListener::unix(UnixSocket::bind(&path, 0o600).unwrap());
    let _api = serve(builder().with_access(access), vec![socket]);
    let ask = |path_asked| ask(&mut UnixStream::connect(&path).unwrap(), path_asked);
    assert!(ask("/health").starts_with("HTTP/1.1 200"));
    assert!(ask("/batch_statuses?id=1").starts_with("HTTP/1.1 401"));
}

#[test]
fn slow_handshakes_delay_no_others_and_end() {
    let (listener, address) = tcp();
    let options =
        ApiOptions { tls_handshake_timeout: Duration::from_millis(300), ..ApiOptions::default() };
    let listeners = vec![ApiListener::tls(listener, certificate())];
    let _api = serve(builder().with_options(options), listeners);
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(address)).collect();
    for stream in &mut slow {
        // The beginning of a handshake record.
        stream.write_all(&[22, 3, 1]).unwrap();
    }
    let response = ask(&mut start_tls(address, "ca.pem"), "/health");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    for mut stream in slow {
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0, "closed without an answer");
    }
}

#[test]
fn request_without_tls_is_refused_by_a_listener_with_tls() {
    let (listener, address) = tcp();
    let _api = serve(builder(), vec![ApiListener::tls(listener, certificate())]);
    let mut stream = connect(address);
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    assert!(ask(&mut start_tls(address, "ca.pem"), "/health").starts_with("HTTP/1.1 200"));
}

#[test]
fn shutdown_does_not_wait_for_a_handshake() {
    let (listener, address) = tcp();
    let options = ApiOptions {
        tls_handshake_timeout: Duration::from_secs(60),
        drain_timeout: Duration::from_secs(60),
        ..ApiOptions::default()
    };
    let api =
        serve(builder().with_options(options), vec![ApiListener::tls(listener, certificate())]);
    let _idle = connect(address);
    assert!(ask(&mut start_tls(address, "ca.pem"), "/health").starts_with("HTTP/1.1 200"));
    api.wait_for_shutdown().unwrap();
}

#[test]
fn files_without_a_certificate_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| -> PathBuf {
        let file = directory.path().join(name);
        fs::write(&file, content).unwrap();
        file
    };
    let text = file("text", "hidden text");
    let broken = file("broken", "-----BEGIN PRIVATE KEY-----\nhidden\n-----END PRIVATE KEY-----\n");
    let certificates = Path::new(CERTIFICATES);
    let (good, key) = (certificates.join("server.pem"), certificates.join("server.key"));
    let other = certificates.join("other_ca.pem");
    for (certificate, key) in [
        (&text, &key),
        (&good, &text),
        (&good, &broken),
        (&good, &directory.path().join("missing")),
        (&other, &key),
    ] {
        let error = TlsCertificate::read(certificate.clone(), key.clone()).unwrap_err();
        let message = format!("{error} {error:?}");
        assert!(!message.contains("hidden"), "{message}");
    }
}
