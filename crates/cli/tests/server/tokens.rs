//! Tokens of clients: created and revoked by command, and effective on every instance.

use std::{fs, os::unix::net::UnixStream};

use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer};

const TOKENS: [(&str, &str); 2] = [("--access-mode", "tokens"), ("--log", "trace")];

fn post(server: &BatchServer, batch: &SignedBatch, token: &str) -> u16 {
    let path = format!("/batches?service_id={}", batch.service_id);
    let authorization = format!("authorization: Bearer {token}");
    let headers = ["content-type: application/octet-stream", &authorization];
    let body = encode_batch_list(std::slice::from_ref(batch));
    send(server.address, &request("POST", &path, &headers, &body)).unwrap().status
}

#[test]
fn token_is_created_and_revoked_on_every_instance() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(2).with_database(database.url());
    let servers = [harness.serve_with(&TOKENS), harness.serve_with(&TOKENS)];
    let [batch, other] = [0, 1].map(|at| signed_batch(&harness.services[at], 1));

    let create =
        ["token", "create", "--name", "ci", "--scope", "submit", "--service", &harness.services[0]];
    let create = [&create[..], &["--reason", "a test"]].concat();
    let created = harness.run_command(&create);
    let token = created.stdout.trim();
    assert!(token.starts_with("gb_"), "{created:?}");
    for server in &servers {
        wait_until("the token is known", || post(server, &batch, token) == 202);
        assert_eq!(post(server, &other, token), 403);
    }
    let again = harness.run_command(&create);
    assert!(again.error_message().contains("revoke it first"), "{again:?}");

    let listed = harness.run_command(&["token", "list", "--json"]);
    assert!(listed.stdout.contains("\"ci\"") && !listed.stdout.contains(token), "{listed:?}");
    let by_secret = harness.run_command(&["token", "revoke", token, "--reason", "a test"]);
    assert!(!by_secret.error_message().contains(token), "{by_secret:?}");
    assert_eq!(
        harness.run_command(&["token", "revoke", "ci", "--reason", "a test"]).exit_code,
        Some(0)
    );
    let logged = harness.run_command(&["actions", "--verb", "revoke_token"]).stdout;
    let id = token.split('_').nth(1).unwrap();
    assert!(logged.contains(&format!("the token {id}")), "{logged}");
    let secret = token.rsplit_once('_').unwrap().1;
    for server in servers {
        wait_until("the token is refused", || post(&server, &batch, token) == 401);
        let output = server.stop_with("TERM");
        assert!(output.stderr.contains("token ci"), "who sent a request is logged");
        assert!(!output.stderr.contains(secret), "no secret is logged");
    }
}

#[test]
fn addresses_of_other_machines_need_tokens() {
    let harness = BatchHarness::scabbard(1);
    let refused = harness.run_command(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.exit_code, Some(78));
    let message = refused.error_message();
    assert!(message.contains("access.mode") && message.contains("token create"), "{message}");
}

#[test]
fn server_listens_at_a_unix_socket_too() {
    let harness = BatchHarness::scabbard(1);
    let socket = harness.path().join("http.sock");
    let listen = format!("127.0.0.1:0,unix:{}", socket.display());
    for _ in 0..2 {
        let server = harness.serve_with(&[("--listen", &listen)]);
        UnixStream::connect(&socket).unwrap();
        // A process that is killed leaves the file behind, which the next one replaces.
        server.process.kill();
        assert!(socket.exists());
    }
    harness.serve_with(&[("--listen", &listen)]).stop();
    assert!(!socket.exists());
    fs::write(&socket, "a file").unwrap();
    let refused = harness.run_command(&["serve", "--listen", &listen]);
    assert!(refused.error_message().contains("is no socket"), "{refused:?}");
}
