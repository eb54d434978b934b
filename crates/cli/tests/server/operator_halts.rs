//! Dependencies, and invalid batches that stop others, as clients and operators see them.

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, depending_batch, signed_batches},
    http::{request, send},
    process::ProcessOutput,
    wait::{wait_for, wait_until},
};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const HALT: &[(&str, &str)] = &[("--services-after-invalid", "halt")];

/// A server whose first batch is invalid and stops the two behind it, which write the same address.
struct Halted {
    harness: BatchHarness,
    server: BatchServer,
    store: Store,
    batches: Vec<SignedBatch>,
}

impl Halted {
    fn new() -> Self {
        Self::of(BatchHarness::sawtooth())
    }

    fn of(harness: BatchHarness) -> Self {
        harness.ledger.inject(Fault::Invalid, When::Next(1));
        let server = harness.serve_with(HALT);
        let batches = signed_batches(&harness.services, 3);
        server.submit(&batches);
        let store = harness.store();
        let halted = Self { harness, server, store, batches };
        wait_until("the first batch is invalid", || {
            halted.stored(0).progress.state == BatchState::Invalid
        });
        halted
    }

    fn stored(&self, number: usize) -> StoredBatch {
        self.store.find(&self.batches[number].batch_id).unwrap().remove(0)
    }

    /// Runs a command about the first batch.
    fn run(&self, command: &str, arguments: &[&str]) -> ProcessOutput {
        self.run_about(0, command, arguments)
    }

    fn run_about(&self, number: usize, command: &str, arguments: &[&str]) -> ProcessOutput {
        let SignedBatch { service_id, batch_id, .. } = &self.batches[number];
        let (service, id) = (service_id.to_string(), batch_id.to_string());
        let output = self
            .harness
            .run_command(&[&[command, service.as_str(), id.as_str()][..], arguments].concat());
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        output
    }
}

fn wait_json(server: &BatchServer, batch: &SignedBatch) -> Value {
    let path = format!("/batch_statuses?id={}", batch.batch_id);
    let response = send(server.address, &request("GET", &path, &[], b"")).unwrap();
    response.json()["data"][0]["progress"]["wait"].clone()
}

#[test]
fn halted_service_goes_on_after_continue() {
    let halted = Halted::new();
    let waiting = wait_json(&halted.server, &halted.batches[1]);
    assert_eq!(waiting["cause"], "halt", "{waiting}");
    assert_eq!(waiting["waits_for"]["batch_id"], halted.batches[0].batch_id.to_string());
    let listed = halted.harness.run_command(&["halts"]).stdout;
    assert!(listed.contains("1 invalid batch stops others"), "{listed}");
    wait_until("the health says so", || {
        let response = send(halted.server.address, &request("GET", "/health", &[], b"")).unwrap();
        response.json()["parts"]["services"]["halted"] == 1
    });
    assert_eq!(halted.harness.ledger.times_received(&halted.batches[1].batch_id), 0);

    halted.run("continue", &["--reason", "looked at it"]);
    wait_until("the others are committed", || {
        count_in_state(&halted.store, BatchState::Committed) == 2
    });
    let shown = halted.run("show", &[]).stdout;
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let logged = "what follows it was continued by an operator: looked at it";
    assert!(shown.join(" ").contains(logged), "{shown:?}");
    halted.server.stop();
}

#[test]
fn scabbard_service_stops_until_an_operator_continues() {
    let halted = Halted::of(BatchHarness::scabbard(1));
    for batch in &halted.batches[1..] {
        assert_eq!(wait_json(&halted.server, batch)["cause"], "halt");
        assert_eq!(halted.harness.ledger.times_received(&batch.batch_id), 0);
    }
    let listed = halted.harness.run_command(&["halts"]).stdout;
    assert!(listed.contains("1 invalid batch stops others"), "{listed}");
    halted.run("continue", &["--reason", "looked at it"]);
    wait_until("the others are committed", || {
        count_in_state(&halted.store, BatchState::Committed) == 2
    });
    halted.server.stop();
}

#[test]
fn operator_ends_what_follows_in_a_scabbard_service() {
    let halted = Halted::of(BatchHarness::scabbard(1));
    halted.run("end-following", &["--reason", "they build on it"]);
    wait_until("the others are invalid", || {
        count_in_state(&halted.store, BatchState::Invalid) == 3
    });
    let next = signed_batches(&halted.harness.services, 4).split_off(3);
    halted.server.submit(&next);
    wait_until("a later batch is committed", || {
        count_in_state(&halted.store, BatchState::Committed) == 1
    });
    for batch in &halted.batches[1..] {
        assert_eq!(halted.harness.ledger.times_received(&batch.batch_id), 0);
    }
    halted.server.stop();
}

/// The flag with the policy is given to the server only.
#[test]
fn batch_that_a_command_decides_stops_others() {
    let halted = Halted::new();
    halted.run_about(1, "decide", &["invalid", "--attempt", "0", "--reason", "not wanted"]);
    wait_until("the server has applied the policy", || {
        let listed = halted.harness.run_command(&["halts"]).stdout;
        listed.contains("2 invalid batches stop others")
    });
    halted.run("continue", &["--reason", "a test"]);
    assert_eq!(wait_json(&halted.server, &halted.batches[2])["cause"], "halt");
    halted.run_about(1, "continue", &["--reason", "a test"]);
    wait_until("the last one is committed", || {
        count_in_state(&halted.store, BatchState::Committed) == 1
    });
    assert_eq!(halted.harness.ledger.times_received(&halted.batches[1].batch_id), 0);
    halted.server.stop();
}

#[test]
fn operator_ends_what_follows_an_invalid_batch() {
    let halted = Halted::new();
    halted.run("end-following", &["--reason", "they build on it"]);
    wait_until("the others are invalid", || {
        count_in_state(&halted.store, BatchState::Invalid) == 3
    });
    for batch in &halted.batches[1..] {
        assert_eq!(halted.harness.ledger.times_received(&batch.batch_id), 0);
    }
    let listed = halted.harness.run_command(&["halts"]).stdout;
    assert!(listed.contains("nothing is stopped"), "{listed}");
    let next = signed_batches(&halted.harness.services, 4).split_off(3);
    halted.server.submit(&next);
    wait_until("a later batch is committed", || {
        count_in_state(&halted.store, BatchState::Committed) == 1
    });
    halted.server.stop();
}

#[test]
fn dependent_that_comes_first_waits_and_is_applied() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let first = signed_batches(&harness.services, 1);
    let dependent = depending_batch(&harness.services[0], 7, &first[0].transaction_ids());
    server.submit(std::slice::from_ref(&dependent));
    let waiting = wait_for("the batch misses a transaction", || {
        Some(wait_json(&server, &dependent)).filter(|it| it["cause"] == "missing_transaction")
    });
    let missing = first[0].transaction_ids()[0].to_string();
    assert_eq!(waiting["waits_for"]["transaction_id"], missing, "{waiting}");
    assert_eq!(harness.ledger.times_received(&dependent.batch_id), 0);
    server.submit(&first);
    let store = harness.store();
    wait_until("both are committed", || count_in_state(&store, BatchState::Committed) == 2);
    server.stop();
}

#[test]
fn dependent_of_an_invalid_batch_is_not_sent() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::Invalid, When::Next(1));
    let server = harness.serve();
    let first = signed_batches(&harness.services, 1);
    let dependent = depending_batch(&harness.services[0], 7, &first[0].transaction_ids());
    server.submit(&[first[0].clone(), dependent.clone()]);
    let store = harness.store();
    wait_until("both are invalid", || count_in_state(&store, BatchState::Invalid) == 2);
    assert_eq!(harness.ledger.times_received(&dependent.batch_id), 0);
    let error = store.find(&dependent.batch_id).unwrap().remove(0).last_error.unwrap();
    assert!(error.contains("it depends on the transaction"), "{error}");
    server.stop();
}

#[test]
fn batch_whose_dependency_never_comes_is_held() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(&[("--testing-dependency-limit", "1s")]);
    let missing = signed_batches(&harness.services, 1).remove(0).transaction_ids();
    let dependent = depending_batch(&harness.services[0], 7, &missing);
    server.submit(std::slice::from_ref(&dependent));
    wait_until("the batch is held", || wait_json(&server, &dependent)["cause"] == "held");
    let listed = harness.run_command(&["held"]).stdout;
    assert!(listed.contains("a transaction that it depends on has not arrived"), "{listed}");
    server.stop();
}
