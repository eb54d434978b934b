//! Batches over TLS, with a token: what other machines use.

use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::request,
    instance::LISTENING_SUFFIX,
    process::TestProcess,
    wait::wait_until,
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};

use crate::harness::BatchHarness;

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../http/tests/http/certificates");

fn certificate(name: &str) -> PathBuf {
    Path::new(CERTIFICATES).join(name)
}

/// The head of the response to a list with one batch.
fn post(address: SocketAddr, batch: &SignedBatch, token: &str) -> String {
    let path = format!("/batches?service_id={}", batch.service_id);
    let authorization = format!("authorization: Bearer {token}");
    let headers = ["content-type: application/octet-stream", &authorization];
    let body = encode_batch_list(std::slice::from_ref(batch));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    stream.write_all(&request("POST", &path, &headers, &body)).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    String::from_utf8(response).unwrap()
}

#[test]
fn batch_is_submitted_over_tls_with_a_token() {
    let harness = BatchHarness::scabbard(1);
    let key = harness.path().join("tls.key");
    fs::copy(certificate("server.key"), &key).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let command = harness.command(&[
        ("--listen", "tls:127.0.0.1:0"),
        ("--http-tls-certificate", &certificate("server.pem").display().to_string()),
        ("--http-tls-key", &key.display().to_string()),
        ("--access-mode", "tokens"),
    ]);
    let mut server = TestProcess::spawn(command);
    let url = server.wait_for_stdout("Accepting batches at https://");
    let address = url.strip_suffix(LISTENING_SUFFIX).unwrap().parse().unwrap();

    let batch = signed_batch(&harness.services[0], 1);
    let refused = post(address, &batch, "gb_none");
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let created = harness.run_command(&[
        "token", "create", "--name", "ci", "--scope", "submit", "--reason", "a test",
    ]);
    let token = created.stdout.trim();
    wait_until("the token is known", || post(address, &batch, token).starts_with("HTTP/1.1 202 "));
    harness.wait_until_all_committed(&[batch]);
    server.signal("TERM");
    let output = server.wait();
    assert!(!output.stderr.contains(token.rsplit_once('_').unwrap().1), "no secret is logged");
}
