//! A Sawtooth node that crashes with a batch, or that a batch stops.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use grid_batch_core::ManualClock;
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// So long that a batch is not sent again within it.
const LONG: &str = "1h";

/// Time limits of which none ends within a test, so that only an outage that was seen counts.
const LONG_EVIDENCE_LIMITS: &[(&str, &str)] =
    &[("--testing-quiet-after", LONG), ("--testing-accept-absence-after", LONG)];

/// How long the REST API of a crashed validator keeps a request: longer than the server waits.
const REST_TIMEOUT: Duration = Duration::from_secs(300);

/// A server and two batches, of which the ledger has the first one and does not execute it yet.
fn serve_with_pending_batch(harness: &BatchHarness) -> (BatchServer, Vec<SignedBatch>) {
    let server = harness.serve_with(LONG_EVIDENCE_LIMITS);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let store = harness.store();
    wait_until("the first batch is pending", || count_in_state(&store, BatchState::Pending) == 1);
    (server, batches)
}

/// A ledger that executes batches when its clock is advanced.
fn stopped_sawtooth() -> (BatchHarness, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    (BatchHarness::sawtooth_with(|ledger| ledger.clock(clock.clone())), clock)
}

/// A batch is pending, the node loses it, and the server sends it again.
fn assert_sent_again_after(lose: impl FnOnce(&BatchHarness, &BatchServer)) {
    let (harness, clock) = stopped_sawtooth();
    let (server, batches) = serve_with_pending_batch(&harness);
    let first = &batches[0].batch_id;
    lose(&harness, &server);
    let back = Instant::now();
    wait_until("the first batch is sent again", || harness.ledger.times_received(first) == 2);
    println!("sent again {:?} after the node was back", back.elapsed());
    let store = harness.store();
    wait_until("all batches are committed", || {
        clock.advance(Duration::from_secs(1));
        count_in_state(&store, BatchState::Committed) == batches.len()
    });
    harness.wait_until_all_committed(&batches);
    assert_eq!(harness.ledger.times_received(first), 2);
    server.stop();
}

#[test]
fn batch_lost_in_a_crash_is_sent_again_soon() {
    assert_sent_again_after(|harness, server| {
        harness.ledger.crash_validator(REST_TIMEOUT);
        server.process.wait_for_log("status requests fail");
        harness.ledger.start_validator();
    });
}

#[test]
fn batch_lost_in_a_restart_is_sent_again_soon() {
    assert_sent_again_after(|harness, _| harness.ledger.restart());
}

#[test]
fn batch_that_stops_its_node_is_held() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::NoProcessor, When::Next(1));
    let (server, batches) = serve_with_pending_batch(&harness);
    let first = &batches[0];
    server.process.wait_for_log("has not answered for");
    harness.ledger.start_validator();
    let store = harness.store();
    wait_until("the batch is held", || !store.held_batches(None, 1).unwrap().is_empty());

    let held = harness.run_command(&["held"]);
    assert!(held.stdout.contains("a node stopped answering while it had the batch"), "{held:?}");
    assert!(held.stdout.contains(&harness.ledger.url()), "{held:?}");
    assert_eq!(harness.ledger.times_received(&first.batch_id), 1);

    let id = first.batch_id.to_string();
    let decided = harness.run_command(&[
        "decide",
        "global",
        &id,
        "invalid",
        "--attempt",
        "1",
        "--reason",
        "a test",
    ]);
    assert_eq!(decided.exit_code, Some(0), "{decided:?}");
    wait_until("the next batch is committed", || {
        count_in_state(&store, BatchState::Committed) == 1
    });
    assert_eq!(harness.ledger.times_received(&first.batch_id), 1);
    assert_eq!(count_in_state(&store, BatchState::Invalid), 1);
    server.stop();
}

/// The next server has not sent the batch, and sees the rest of the hang.
#[test]
fn batch_that_stops_its_node_is_held_after_a_kill() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::NoProcessor, When::Next(1));
    let (server, batches) = serve_with_pending_batch(&harness);
    server.process.kill();
    let server = harness.serve_with(LONG_EVIDENCE_LIMITS);
    server.process.wait_for_log("has not answered for");
    harness.ledger.restart();
    let store = harness.store();
    wait_until("the batch is held", || !store.held_batches(None, 1).unwrap().is_empty());
    assert_eq!(harness.ledger.times_received(&batches[0].batch_id), 1);
    server.stop();
}

/// The node is polled again soon after a long outage, with and without events.
#[test]
fn node_is_polled_soon_after_a_long_outage() {
    /// Of the test's settings: a node that does not answer is asked at least this often.
    const LONGEST_PAUSE: Duration = Duration::from_millis(2 * 50);
    for sockets in ["100", "0"] {
        let (harness, clock) = stopped_sawtooth();
        let flags = [("--testing-longest-interval", "1h"), ("--ledger-event-sockets", sockets)];
        let server = harness.serve_with(&[LONG_EVIDENCE_LIMITS, &flags].concat());
        let batches = signed_batches(&harness.services, 1);
        server.submit(&batches);
        let store = harness.store();
        wait_until("the batch is pending", || count_in_state(&store, BatchState::Pending) == 1);
        harness.ledger.kill();
        server.wait_for_outage(40 * LONGEST_PAUSE);
        let before = harness.ledger.requests().len();
        harness.ledger.start_again();
        let back = Instant::now();
        wait_until("the node is polled", || harness.ledger.requests().len() > before);
        let took = back.elapsed();
        println!("polled {took:?} after the node was back");
        assert!(took <= 10 * LONGEST_PAUSE, "{sockets} sockets: {took:?}");
        clock.advance(Duration::from_secs(1));
        server.stop_with("KILL");
    }
}
