//! Transactions that batches depend on and that only the ledger has, because another client has sent them.

use grid_batch_core::batches::BatchState;
use grid_batch_test_support::{
    batches::{SignedBatch, depending_batch, signed_batch},
    wait::wait_until,
};

use crate::harness::{BatchHarness, count_in_state};

const SERVICE: &str = "global";

/// A batch of another client, one that depends on it, and one that depends on that.
fn chain() -> [SignedBatch; 3] {
    let first = signed_batch(SERVICE, 1);
    let second = depending_batch(SERVICE, 2, &first.transaction_ids());
    let third = depending_batch(SERVICE, 3, &second.transaction_ids());
    [first, second, third]
}

fn wait_until_both_committed(harness: &BatchHarness) {
    let store = harness.store();
    wait_until("both are committed", || count_in_state(&store, BatchState::Committed) == 2);
    assert_eq!(harness.ledger.record().len(), 3, "each was executed once");
}

#[test]
fn dependent_of_what_the_ledger_has_is_sent() {
    let harness = BatchHarness::sawtooth();
    let [first, second, third] = chain();
    harness.execute_for_another_client(&first);
    let server = harness.serve();
    server.submit(&[second, third]);
    wait_until_both_committed(&harness);
    server.stop();
}

#[test]
fn dependent_waits_until_the_ledger_has_the_transaction() {
    let harness = BatchHarness::sawtooth();
    let [first, second, third] = chain();
    let server = harness.serve();
    server.submit(&[third.clone(), second.clone()]);
    let independent = signed_batch(SERVICE, 4);
    server.submit(std::slice::from_ref(&independent));
    let store = harness.store();
    wait_until("the independent one is committed", || {
        count_in_state(&store, BatchState::Committed) == 1
    });
    for waiting in [&second, &third] {
        assert_eq!(harness.ledger.times_received(&waiting.batch_id), 0);
    }
    harness.execute_for_another_client(&first);
    wait_until("all are committed", || count_in_state(&store, BatchState::Committed) == 3);
    assert_eq!(harness.ledger.record().len(), 4, "each was executed once");
    server.stop();
}

#[test]
fn held_dependent_goes_on_when_the_ledger_has_the_transaction() {
    let harness = BatchHarness::sawtooth();
    let [first, second, third] = chain();
    let server = harness.serve_with(&[("--testing-dependency-limit", "1s")]);
    server.submit(&[second, third]);
    let store = harness.store();
    let held = || store.waiting_holds().unwrap().len();
    wait_until("the batches are held", || held() == 2);
    harness.execute_for_another_client(&first);
    wait_until_both_committed(&harness);
    assert_eq!(held(), 0);
    server.stop();
}
