//! Clients of Scabbard, whose keys the nodes must accept.

use std::{fs, os::unix::fs::PermissionsExt};

use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batch},
    http::{Response, request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer};

const DEFAULT: [(&str, &str); 1] = [("--access-mode", "")];
/// The server's own key, in the file of the harness.
const OWN: [u8; 32] = [7; 32];

/// A ledger that knows the keys of the server, of a writer and of a reader, and no others.
struct Keys {
    writer: SigningKey,
    reader: SigningKey,
    stranger: SigningKey,
}

impl Keys {
    fn new() -> Self {
        let [writer, reader, stranger] = [1, 2, 3].map(SigningKey::from_seed);
        Self { writer, reader, stranger }
    }

    fn harness(&self) -> BatchHarness {
        let own = SigningKey::from_bytes(OWN).unwrap();
        BatchHarness::scabbard_with(2, |ledger| {
            ledger
                .allow_keys([own.public_key(), self.writer.public_key()])
                .allow_readers([self.reader.public_key()])
        })
    }
}

fn authorization(key: &SigningKey) -> String {
    format!("authorization: Bearer Cylinder:{}", CylinderToken::new(key).as_str())
}

fn ask(server: &BatchServer, path: &str, key: Option<&SigningKey>) -> Response {
    let headers: Vec<String> = key.map(authorization).into_iter().collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    send(server.address, &request("GET", path, &headers, b"")).unwrap()
}

fn post(
    server: &BatchServer,
    path: &str,
    batch: &SignedBatch,
    key: Option<&SigningKey>,
) -> Response {
    let mut headers = vec!["content-type: application/octet-stream".to_owned()];
    headers.extend(key.map(authorization));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = encode_batch_list(std::slice::from_ref(batch));
    send(server.address, &request("POST", path, &headers, &body)).unwrap()
}

fn path_of(batch: &SignedBatch, endpoint: &str) -> String {
    format!("/scabbard/{}/{endpoint}", batch.service_id.as_str().replace("::", "/"))
}

#[test]
fn batch_of_a_key_that_the_node_refuses_is_refused() {
    let keys = Keys::new();
    let harness = keys.harness();
    let server = harness.serve_with(&DEFAULT);
    let batch = signed_batch(&harness.services[0], 1);
    let own = format!("/batches?service_id={}", batch.service_id);
    let below_v1 = format!("/v1/batches?service_id={}", batch.service_id);
    for path in [&path_of(&batch, "batches"), &own, &below_v1] {
        for key in [None, Some(&keys.stranger), Some(&keys.reader)] {
            let refused = post(&server, path, &batch, key);
            assert_eq!(refused.status, 401, "{path} {refused:?}");
        }
    }
    assert_eq!(harness.ledger.record().len(), 0);
    let accepted = post(&server, &path_of(&batch, "batches"), &batch, Some(&keys.writer));
    assert_eq!(accepted.status, 202, "{accepted:?}");
    harness.wait_until_all_committed(&[batch]);
    server.stop();
}

#[test]
fn node_is_read_only_with_a_key_that_it_accepts() {
    let keys = Keys::new();
    let harness = keys.harness();
    let server = harness.serve_with(&DEFAULT);
    let batch = signed_batch(&harness.services[0], 1);
    let of_service = ["state_root", "state", "batch_statuses?ids=aa"].map(|it| path_of(&batch, it));
    for path in of_service.iter().map(String::as_str).chain(["/admin/circuits"]) {
        assert_eq!(ask(&server, path, None).status, 401, "{path}");
        assert_eq!(ask(&server, path, Some(&keys.stranger)).status, 401, "{path}");
        assert_eq!(ask(&server, path, Some(&keys.reader)).status, 200, "{path}");
    }
    let body = ask(&server, "/admin/circuits", None).json();
    assert_eq!(body["code"], "401", "{body}");
    assert_eq!(ask(&server, "/nowhere", None).status, 404);
    assert_eq!(ask(&server, "/health", None).status, 200);
    server.stop();
}

#[test]
fn listed_key_needs_no_permission_of_the_node() {
    let keys = Keys::new();
    let harness = keys.harness();
    let services = &harness.services;
    let grant = format!("{}=submit+read@{}", keys.stranger.public_key(), services[0]);
    let server = harness.serve_with(&[DEFAULT[0], ("--access-keys", &grant)]);
    let [batch, other] = [0, 1].map(|at| signed_batch(&services[at], 1));
    let submit = |batch| post(&server, &path_of(batch, "batches"), batch, Some(&keys.stranger));
    assert_eq!(submit(&other).status, 403);
    assert_eq!(submit(&batch).status, 202);
    let root = ask(&server, &path_of(&batch, "state_root"), Some(&keys.stranger));
    assert_eq!(root.status, 200, "{root:?}");
    assert_eq!(post(&server, &path_of(&other, "batches"), &other, Some(&keys.writer)).status, 202);
    harness.wait_until_all_committed(&[batch, other]);
    server.stop();
}

#[test]
fn accepted_key_is_remembered_while_the_node_is_down() {
    let keys = Keys::new();
    let harness = keys.harness();
    let server = harness.serve_with(&DEFAULT);
    let [first, second] = [1, 2].map(|number| signed_batch(&harness.services[0], number));
    let submit = |batch, key| post(&server, &path_of(batch, "batches"), batch, Some(key));
    assert_eq!(submit(&first, &keys.writer).status, 202);
    harness.ledger.kill();
    assert_eq!(submit(&second, &keys.writer).status, 202);
    let unknown = submit(&second, &keys.stranger);
    assert_eq!(unknown.status, 503, "{unknown:?}");
    harness.ledger.start_again();
    wait_until("the node refuses the key", || submit(&second, &keys.stranger).status == 401);
    harness.wait_until_all_committed(&[first, second]);
    server.stop();
}

#[test]
fn own_client_submits_with_a_key() {
    let keys = Keys::new();
    let harness = keys.harness();
    let server = harness.serve_with(&DEFAULT);
    let url = format!("http://{}", server.address);
    let batch = signed_batch(&harness.services[0], 1);
    let list = harness.path().join("batch.list");
    fs::write(&list, encode_batch_list(std::slice::from_ref(&batch))).unwrap();
    let key = harness.path().join("client.key");
    fs::write(&key, "07".repeat(32)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let [list, key] = [&list, &key].map(|path| path.to_str().unwrap());
    let submit = ["submit", list, "--service", &harness.services[0], "--url", &url];
    let refused = harness.run_command(&submit);
    assert!(refused.error_message().contains("--key"), "{refused:?}");
    let accepted = harness.run_command(&[&submit[..], &["--key", key, "--wait"]].concat());
    assert_eq!(accepted.exit_code, Some(0), "{accepted:?}");
    server.stop();
}

#[test]
fn doctor_and_start_say_who_may_submit() {
    let keys = Keys::new();
    let harness = keys.harness();
    for (mode, expected) in
        [("", "ledger_keys; batches are accepted from"), ("none", "none; the server submits")]
    {
        let doctor = harness.run_command(&["doctor", "--access-mode", mode]);
        assert!(doctor.stdout.contains(expected), "{doctor:?}");
        let server = harness.serve_with(&[("--access-mode", mode), ("--log", "info")]);
        let output = server.stop_with("TERM");
        assert!(output.stderr.contains(expected), "{output:?}");
    }
}
