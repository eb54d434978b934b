//! Sawtooth batches, or transactions of them, that another client has sent before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{ExecutionResult, Fault, LedgerSimBuilder, When};
use grid_batch_test_support::{
    batches::{SignedBatch, batch_of_transactions, depending_batch, signed_batch},
    wait::{wait_for, wait_until},
};

use crate::harness::BatchHarness;

const SERVICE: &str = "global";

fn stored(harness: &BatchHarness, batch: &SignedBatch) -> StoredBatch {
    harness.store().details(&batch.service_id, &batch.batch_id).unwrap().unwrap().batch
}

/// Waits until the batch ends, and returns its state and how long that took.
fn wait_for_end(harness: &BatchHarness, batch: &SignedBatch) -> BatchState {
    let started = Instant::now();
    let state = wait_for("the batch ends", || {
        Some(stored(harness, batch).progress.state).filter(|state| state.is_terminal())
    });
    eprintln!("the batch ended as {state} after {:?}", started.elapsed());
    state
}

/// The reason that a client reads.
fn reason(harness: &BatchHarness, batch: &SignedBatch) -> String {
    stored(harness, batch).last_error.unwrap_or_default()
}

/// Transaction 1 is in the chain; the batch has it, too.
fn batch_with_an_applied_transaction(harness: &BatchHarness) -> [SignedBatch; 2] {
    let earlier = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&earlier);
    [batch_of_transactions(SERVICE, &[2, 1]), signed_batch(SERVICE, 3)]
}

fn assert_ends_invalid_with_the_transaction(harness: &BatchHarness, batches: &[SignedBatch; 2]) {
    let [batch, next] = batches;
    assert_eq!(wait_for_end(harness, batch), BatchState::Invalid);
    let transaction = batch_of_transactions(SERVICE, &[1]).transaction_ids()[0];
    let reason = reason(harness, batch);
    assert!(reason.contains(&transaction.to_string()), "{reason}");
    assert_eq!(wait_for_end(harness, next), BatchState::Committed);
}

#[test]
fn batch_with_an_applied_transaction_ends_invalid() {
    let harness = BatchHarness::sawtooth();
    let batches = batch_with_an_applied_transaction(&harness);
    let server = harness.serve();
    server.submit(&batches);
    assert_ends_invalid_with_the_transaction(&harness, &batches);
    server.stop();
}

/// The batch of its dependency is invalid, because the ledger has the transaction from another client.
#[test]
fn dependent_of_an_applied_transaction_is_applied() {
    let harness = BatchHarness::sawtooth();
    let [invalid, _] = batch_with_an_applied_transaction(&harness);
    let applied = batch_of_transactions(SERVICE, &[1]).transaction_ids();
    let dependent = depending_batch(SERVICE, 7, &applied);
    let server = harness.serve();
    server.submit(&[invalid.clone(), dependent.clone()]);
    assert_eq!(wait_for_end(&harness, &invalid), BatchState::Invalid);
    assert_eq!(wait_for_end(&harness, &dependent), BatchState::Committed);
    server.stop();
}

#[test]
fn applied_transaction_ends_a_batch_in_doubt() {
    let harness = BatchHarness::sawtooth();
    let batches = batch_with_an_applied_transaction(&harness);
    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    let server = harness.serve_with(&[("--testing-accept-absence-after", "22s")]);
    server.submit(&batches);
    assert_ends_invalid_with_the_transaction(&harness, &batches);
    assert_eq!(harness.ledger.times_received(&batches[0].batch_id), 0);
    server.stop();
}

#[test]
fn applied_transaction_ends_a_batch_after_a_kill() {
    let harness = BatchHarness::sawtooth();
    let batches = batch_with_an_applied_transaction(&harness);
    let server = harness.serve_with(&[("--testing-quiet-after", "1h")]);
    server.submit(&batches);
    wait_until("the batch is pending", || {
        stored(&harness, &batches[0]).progress.state == BatchState::Pending
    });
    server.process.kill();
    let server = harness.serve();
    assert_ends_invalid_with_the_transaction(&harness, &batches);
    server.stop();
}

/// A ledger that executes a batch some time after it was sent, and finds batches invalid as long as
/// this is set.
fn slow_ledger() -> (BatchHarness, Arc<AtomicBool>) {
    let refuses = Arc::new(AtomicBool::new(true));
    let rule = Arc::clone(&refuses);
    let configure = |ledger: LedgerSimBuilder| {
        ledger
            .pending_for(Duration::from_millis(700))
            .refuse(move |_| rule.load(Ordering::SeqCst).then(|| "not now".to_owned()))
    };
    (BatchHarness::sawtooth_with(configure), refuses)
}

#[test]
fn invalid_from_before_the_post_does_not_end_a_batch() {
    let (harness, refuses) = slow_ledger();
    let batch = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&batch);
    refuses.store(false, Ordering::SeqCst);

    let server = harness.serve();
    server.submit(std::slice::from_ref(&batch));
    assert_eq!(wait_for_end(&harness, &batch), BatchState::Committed);
    server.stop();
}

#[test]
fn batch_that_is_invalid_again_ends_invalid() {
    let (harness, _refuses) = slow_ledger();
    let batch = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&batch);

    let server = harness.serve();
    server.submit(std::slice::from_ref(&batch));
    assert_eq!(wait_for_end(&harness, &batch), BatchState::Invalid);
    let results: Vec<_> = harness.ledger.record().iter().map(|entry| entry.result).collect();
    assert_eq!(results, [ExecutionResult::Invalid; 2]);
    server.stop();
}

/// The node keeps the INVALID, so it does not show that it has not received the POST.
#[test]
fn lost_post_of_a_batch_that_was_invalid_is_repeated() {
    let (harness, refuses) = slow_ledger();
    let batch = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&batch);
    refuses.store(false, Ordering::SeqCst);

    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    let server = harness.serve();
    server.submit(std::slice::from_ref(&batch));
    assert_eq!(wait_for_end(&harness, &batch), BatchState::Committed);
    server.stop();
}

#[test]
fn invalid_from_before_the_post_is_unknown_after_a_kill() {
    let (harness, refuses) = slow_ledger();
    let batch = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&batch);
    refuses.store(false, Ordering::SeqCst);

    let server = harness.serve();
    server.submit(std::slice::from_ref(&batch));
    wait_until("the batch is sent", || harness.ledger.times_received(&batch.batch_id) == 2);
    server.process.kill();
    let server = harness.serve();
    assert_eq!(wait_for_end(&harness, &batch), BatchState::Committed);
    server.stop();
}

#[test]
fn batch_that_another_client_committed_is_not_sent() {
    let harness = BatchHarness::sawtooth();
    let batches = [1, 2].map(|number| signed_batch(SERVICE, number));
    harness.execute_for_another_client(&batches[0]);
    let server = harness.serve();
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    assert_eq!(batches.map(|batch| harness.ledger.times_received(&batch.batch_id)), [1, 1]);
    server.stop();
}
