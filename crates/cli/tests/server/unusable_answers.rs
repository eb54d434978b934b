//! A batch whose ledger was replaced by a server that is no ledger, or is not reachable.

use std::time::Duration;

use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_store::Store;
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::{BatchHarness, BatchServer};

/// A batch waits for nothing but a usable answer.
const FLAGS: &[(&str, &str)] =
    &[("--ledger-late-arrival-limit", "1h"), ("--testing-warn-after", "2s")];

/// A server whose first batch is in doubt or at the ledger, which has not executed it.
fn serve_with_batch_under_way(harness: &BatchHarness) -> (BatchServer, Store) {
    harness.ledger.inject(Fault::ResetAfter, When::Next(1));
    let server = harness.serve_with(FLAGS);
    server.submit(&signed_batches(&harness.services, 1));
    let store = harness.store();
    wait_until("the batch is under way", || {
        let batch = &signed_batches(&harness.services, 1)[0];
        store.find(&batch.batch_id).unwrap().remove(0).progress.state.awaits_poller()
    });
    (server, store)
}

fn assert_held_at_another_server(harness: &BatchHarness, status: u16) {
    let (server, store) = serve_with_batch_under_way(harness);
    harness.ledger.inject(Fault::OtherServer { status }, When::Always);
    wait_until("the batch is held", || !store.held_batches(None, 1).unwrap().is_empty());
    let held = harness.run_command(&["held"]).stdout;
    assert!(held.contains("no evidence shows whether the ledger has the batch"), "{held}");
    assert!(held.contains(&harness.ledger.url()), "the node is named: {held}");

    harness.ledger.heal();
    wait_until("the hold ends with the ledger's status", || {
        store.held_batches(None, 1).unwrap().is_empty()
    });
    server.stop();
}

/// A ledger that takes longer for a batch than a test lasts, if it is not asked.
fn slow_sawtooth() -> BatchHarness {
    BatchHarness::sawtooth_with(|ledger| ledger.pending_for(SLOW))
}

fn slow_scabbard() -> BatchHarness {
    BatchHarness::scabbard_with(1, |ledger| ledger.pending_for(SLOW))
}

const SLOW: Duration = Duration::from_secs(8);

#[test]
fn batch_is_held_when_its_sawtooth_url_answers_404() {
    assert_held_at_another_server(&slow_sawtooth(), 404);
}

#[test]
fn batch_is_held_when_its_sawtooth_url_is_a_web_page() {
    assert_held_at_another_server(&slow_sawtooth(), 200);
}

#[test]
fn batch_is_held_when_its_scabbard_url_answers_404() {
    assert_held_at_another_server(&slow_scabbard(), 404);
}

#[test]
fn batch_is_held_when_its_scabbard_url_is_a_web_page() {
    assert_held_at_another_server(&slow_scabbard(), 200);
}

/// It goes on by itself when the node is back, so it is warned of and not held.
fn assert_outage_holds_nothing(harness: &BatchHarness) {
    let (server, store) = serve_with_batch_under_way(harness);
    harness.ledger.freeze();
    server.process.wait_for_log("services stand still");
    // The warning is repeated after twice the time after which the batch would be held.
    wait_until("the warning is repeated", || {
        server.process.stderr().matches("services stand still").count() >= 2
    });
    assert!(store.held_batches(None, 1).unwrap().is_empty());
    harness.ledger.thaw();
    server.process.wait_for_log("no service stands still any more");
    server.stop();
}

#[test]
fn batch_at_a_hung_sawtooth_node_is_warned_of_not_held() {
    assert_outage_holds_nothing(&BatchHarness::sawtooth_with(|l| l.pending_for(SLOW)));
}

#[test]
fn batch_at_a_hung_scabbard_node_is_warned_of_not_held() {
    assert_outage_holds_nothing(&slow_scabbard());
}
