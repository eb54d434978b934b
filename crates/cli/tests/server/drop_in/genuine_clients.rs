//! Clients of the ledgers as package registries have them.

use std::{env, path::PathBuf, process::Command};

use crate::harness::BatchHarness;

/// Where `scripts/drop-in` has installed the clients.
fn installed() -> PathBuf {
    env::var_os("GRID_BATCH_TEST_CLIENTS").expect("run scripts/drop-in").into()
}

fn source(name: &str) -> String {
    format!("{}/../../tests/drop-in/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn assert_succeeds(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
#[ignore = "needs the clients that scripts/drop-in installs"]
fn genuine_clients_of_sawtooth_submit_batches() {
    let (harness, clients) = (BatchHarness::sawtooth(), installed());
    let server = harness.serve();
    let url = format!("http://{}", server.address);
    let mut python = Command::new(clients.join("venv/bin/python"));
    assert_succeeds(python.args([&source("sawtooth.py"), &url]));
    let mut node = Command::new("node");
    node.env("NODE_PATH", clients.join("node_modules"));
    assert_succeeds(node.args([&source("sawtooth.js"), &url]));
    server.stop();
}

#[test]
#[ignore = "needs the clients that scripts/drop-in installs"]
fn genuine_clients_of_scabbard_submit_batches_and_read_state() {
    let (harness, clients) = (BatchHarness::scabbard(1), installed());
    let server = harness.serve_with(&[("--access-mode", "")]);
    let mut client = Command::new(clients.join("target/debug/grid-batch-drop-in"));
    assert_succeeds(client.args([&format!("http://{}", server.address), &harness.services[0]]));
    server.stop();
}
