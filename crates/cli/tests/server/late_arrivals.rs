//! A POST that arrives at the ledger long after the server gave it up.

use std::time::Duration;

use grid_batch_core::BatchState;
use grid_batch_ledger_sim::{ExecutionResult, Fault, When};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const NEVER: Duration = Duration::from_hours(1);

/// The first attempt is kept on its way, and the second one is answered that the batch is invalid.
fn serve_with_late_first_attempt(
    harness: &BatchHarness,
    limit: &str,
) -> (BatchServer, Vec<SignedBatch>) {
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    harness.ledger.inject(Fault::Invalid, When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", limit)]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    wait_until("the second attempt is invalid", || {
        harness.ledger.record().iter().any(|entry| entry.result == ExecutionResult::Invalid)
    });
    (server, batches)
}

fn wait_until_first_waits(store: &Store, batches: &[SignedBatch]) {
    wait_until("the first batch waits for its first attempt", || {
        let batch = store.find(&batches[0].batch_id).unwrap().remove(0);
        batch.last_error.is_some_and(|error| error.contains("an earlier attempt may still arrive"))
    });
}

fn assert_invalid_waits_for_the_first_attempt(harness: &BatchHarness) {
    let (server, batches) = serve_with_late_first_attempt(harness, "1h");
    let store = harness.store();
    wait_until_first_waits(&store, &batches);
    assert_eq!(count_in_state(&store, BatchState::Invalid), 0);
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);

    harness.ledger.deliver_late();
    wait_until("both batches are committed", || count_in_state(&store, BatchState::Committed) == 2);
    let audit = harness.ledger.audit(&batch_ids(&batches));
    assert!(audit.is_clean(), "{audit}");
    server.stop();
}

#[test]
fn invalid_waits_for_an_earlier_attempt_on_sawtooth() {
    assert_invalid_waits_for_the_first_attempt(&BatchHarness::sawtooth());
}

#[test]
fn invalid_waits_for_an_earlier_attempt_on_scabbard() {
    assert_invalid_waits_for_the_first_attempt(&BatchHarness::scabbard(1));
}

#[test]
fn wait_for_an_earlier_attempt_survives_a_kill() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "1h");
    let store = harness.store();
    wait_until_first_waits(&store, &batches);
    server.process.kill();

    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let checked_at = |store: &Store| store.find(&batches[0].batch_id).unwrap()[0].checked_at;
    let before = checked_at(&store);
    wait_until("the new server has polled the batch", || checked_at(&store) > before);
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);
    harness.ledger.deliver_late();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn invalid_is_final_when_no_attempt_can_arrive_any_more() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "2s");
    let store = harness.store();
    wait_until("the first batch ends", || count_in_state(&store, BatchState::Invalid) == 1);
    wait_until("the next batch continues", || count_in_state(&store, BatchState::Committed) == 1);

    // The limit was too short.
    harness.ledger.deliver_late();
    server.process.wait_for_log("reports a batch as committed that had ended as invalid");
    let first = &batches[0];
    let service = first.service_id.as_str().parse().unwrap();
    let details = store.details(&service, &first.batch_id).unwrap().unwrap();
    assert_eq!(details.batch.progress.state, BatchState::Invalid);
    assert_eq!(details.commit_after_invalid.unwrap().source, "evidence");
    server.stop();
}

#[test]
fn rejection_is_not_final_while_an_attempt_may_arrive() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    harness.ledger.inject(Fault::Rejected, When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let store = harness.store();
    wait_until_first_waits(&store, &batches);

    harness.ledger.deliver_late();
    harness.wait_until_all_committed(&batches);
    server.stop();
}
