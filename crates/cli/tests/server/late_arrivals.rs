//! A POST that arrives at the ledger long after the server gave it up.

use std::time::Duration;

use grid_batch_core::BatchState;
use grid_batch_ledger_sim::{ExecutionResult, Fault, When};
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

#[test]
fn invalid_is_not_final_while_an_attempt_may_arrive() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "1h");
    let store = harness.store();
    wait_until("the batch waits for its first attempt", || {
        let batch = store.find(&batches[0].batch_id).unwrap().remove(0);
        batch.last_error.is_some_and(|error| error.contains("an earlier attempt may still arrive"))
    });
    assert_eq!(count_in_state(&store, BatchState::Invalid), 0);
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);

    harness.ledger.deliver_late();
    wait_until("both batches are committed", || count_in_state(&store, BatchState::Committed) == 2);
    let audit = harness.ledger.audit(&batch_ids(&batches));
    assert!(audit.is_clean(), "{audit}");
    server.stop();
}
