//! The dashboard in a real browser. The scripts of `tests/dashboard` use it.

use std::{fs, path::Path};

use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list, signed_batches},
    browser,
    wait::wait_until,
};
use serde_json::{Value, json};

use crate::{
    harness::{BatchHarness, BatchServer},
    instances::group::InstanceGroup,
};

/// Runs a script of `tests/dashboard` to its end.
fn run_script(name: &str, directory: &Path, arguments: Value) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = sources.join("tests/dashboard").join(name);
    browser::run_script(&script, directory, &sources.join("../../docs/images"), arguments);
}

fn url(server: &BatchServer) -> String {
    format!("http://{}", server.address)
}

fn post(server: &BatchServer, path: &str, body: Value) {
    let response = server.post_json(path, &body);
    assert_eq!(response.status, 200, "{response:?}");
}

/// A server with a committed batch, a paused service, and a batch of it that is held.
struct Shown {
    harness: BatchHarness,
    server: BatchServer,
    batches: Vec<SignedBatch>,
}

impl Shown {
    fn new() -> Self {
        let harness = BatchHarness::sawtooth();
        let server = harness.serve();
        let batches = signed_batches(&harness.services, 2);
        server.submit(&batches[..1]);
        harness.wait_until_all_committed(&batches[..1]);
        post(&server, "/v1/services/global/pause", json!({"reason": "maintenance"}));
        server.submit(&batches[1..]);
        let hold = format!("/v1/batches/{}/hold", batches[1].batch_id);
        post(&server, &hold, json!({"reason": "look first"}));
        wait_until("the depth is measured twice", || {
            let history = server.get("/v1/history");
            let points = history["data"].as_array().unwrap();
            points.len() > 1 && points.last().unwrap()["open"] == 1
        });
        Self { harness, server, batches }
    }

    fn run_script(&self, name: &str) {
        let arguments = json!({
            "url": url(&self.server),
            "service": "global",
            "committed": self.batches[0].batch_id.to_string(),
            "held": self.batches[1].batch_id.to_string(),
        });
        run_script(name, self.harness.path(), arguments);
    }
}

#[test]
fn every_view_shows_what_the_server_has() {
    Shown::new().run_script("views.mjs");
}

#[test]
fn held_batch_is_decided_in_the_browser() {
    let shown = Shown::new();
    shown.run_script("decision.mjs");
    let log = shown.server.get("/v1/operator-actions?verb=end_invalid");
    assert_eq!(log["data"][0]["reason"], "the application was stopped", "{log}");
    assert_eq!(log["data"][0]["batch_id"], shown.batches[1].batch_id.to_string());
}

#[test]
fn page_of_one_instance_shows_events_of_another() {
    let group = InstanceGroup::new(2);
    let [first, second] = ["first", "second"].map(|name| group.start(name));
    let batches = group.batches(0);
    let list = group.harness.path().join("list");
    fs::write(&list, encode_batch_list(&batches[..1])).unwrap();
    let arguments = json!({
        "url": url(&first),
        "other": url(&second),
        "service": batches[0].service_id.to_string(),
        "batch": batches[0].batch_id.to_string(),
        "list": list.display().to_string(),
    });
    run_script("live.mjs", group.harness.path(), arguments);
    first.stop();
    second.stop();
}

#[test]
fn reader_signs_in_with_a_token() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(&[("--access-mode", "tokens")]);
    let created = harness.run_command(&[
        "token", "create", "--name", "reader", "--scope", "read", "--reason", "a test",
    ]);
    let token = created.stdout.trim();
    let path = "/v1/services";
    wait_until("the token is known", || server.status_with_token(path, token) == 200);
    let arguments = json!({ "url": url(&server), "token": token });
    run_script("sign_in.mjs", harness.path(), arguments);
    server.stop();
}
