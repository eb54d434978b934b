//! Batches of Scabbard services that the node does not have.

use std::time::{Duration, Instant};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_test_support::{
    batches::{batch_ids, signed_batch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, LONG_LEDGER_TIMEOUTS, count_all, count_in_state};

const UNKNOWN: &str = "test-00000::zzzzz";

#[test]
fn unknown_service_is_refused_at_once_until_created() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let store = harness.store();
    let first = signed_batch(UNKNOWN, 1);
    let refused = server.post(std::slice::from_ref(&first)).unwrap();
    assert_eq!(refused.status, 404, "{refused:?}");
    let error = &refused.json()["error"];
    assert_eq!(error["code"], 1015);
    let message = error["message"].as_str().unwrap();
    for part in [UNKNOWN, &harness.ledger.url(), "service ids are four"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(count_all(&store), 0, "a stray batch");
    let known = signed_batch(&harness.services[0], 3);
    server.submit(std::slice::from_ref(&known));
    let warning = "the node does not have this service";
    assert_eq!(server.process.stderr().matches(warning).count(), 1);

    harness.ledger.add_service(UNKNOWN.parse().unwrap());
    wait_until("the service is accepted", || {
        server.post(std::slice::from_ref(&first)).unwrap().status == 202
    });
    wait_until("the batches are committed", || count_in_state(&store, BatchState::Committed) == 2);
    let audit = harness.ledger.audit(&batch_ids(&[first, known]));
    assert!(audit.is_clean(), "{audit}");
    server.stop();
}

#[test]
fn batch_is_accepted_while_the_node_does_not_answer() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve_with(LONG_LEDGER_TIMEOUTS);
    harness.ledger.freeze();
    let batch = signed_batch(&harness.services[0], 1);
    let started = Instant::now();
    assert_eq!(server.post(std::slice::from_ref(&batch)).unwrap().status, 202);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    harness.ledger.thaw();
    harness.wait_until_all_committed(&[batch]);
    server.stop();
}

/// A node that starts answers for a while as if it did not have its services.
#[test]
fn service_of_a_starting_node_is_not_called_wrong() {
    let harness = BatchHarness::scabbard(1);
    let mut batches = signed_batches(&harness.services, 2);
    let last = batches.pop().unwrap();
    let server = harness.serve();
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    server.stop();

    harness.ledger.set_services_started(false);
    let server = harness.serve();
    assert_eq!(server.post(std::slice::from_ref(&last)).unwrap().status, 202);
    server.process.wait_for_log("the node has not started this service");
    assert!(!server.process.stderr().contains("correct the id"));
    harness.ledger.set_services_started(true);
    batches.push(last);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn doctor_asks_for_the_services_of_peers() {
    let harness = BatchHarness::scabbard(1);
    let [right, wrong] = ["p0001", "gsXX"];
    let peer = format!("test-00000::{right}").parse::<ServiceScopeId>().unwrap();
    let beta = LedgerSim::scabbard([peer]).start().unwrap();
    let doctor = |id: &str| {
        let peers = format!("{}={id}@{}", harness.services[0], beta.url());
        harness.run_command(&["doctor", "--services-peers", &peers])
    };
    let output = doctor(right);
    assert!(output.stdout.contains("has the service test-00000::p0001"), "{output:?}");
    let output = doctor(wrong);
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("does not have the service test-00000::gsXX of services.*.peers"),
        "{text}"
    );
}
