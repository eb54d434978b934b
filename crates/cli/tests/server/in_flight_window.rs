//! How many batches are under way at a Sawtooth ledger.

use std::time::{Duration, Instant};

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, LedgerSimBuilder, RandomBatches, When};
use grid_batch_test_support::{
    batches::SignedBatch,
    http::{request, send},
    wait::{wait_for, wait_until},
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// Batches none of which conflicts with another one.
fn independent(count: usize) -> Vec<SignedBatch> {
    let mut random = RandomBatches::new(3);
    (0..count).map(|_| SignedBatch::new("global", random.independent())).collect()
}

/// The window of a new server.
const INITIAL: u64 = 50;

/// A number of the part `in_flight` of the health.
fn in_flight(server: &BatchServer, name: &str) -> u64 {
    let health = send(server.address, &request("GET", "/health", &[], b"")).unwrap();
    health.json()["parts"]["in_flight"][name].as_u64().unwrap()
}

/// A ledger that adds a block of so many batches at this interval.
fn blocks(interval: Duration, size: usize) -> impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder {
    move |ledger| ledger.pending_for(Duration::ZERO).block_interval(interval).block_size(size)
}

const NEVER: Duration = Duration::from_hours(1);

fn wait_until_committed(harness: &BatchHarness, count: usize) {
    let store = harness.store();
    wait_until("all batches are committed", || {
        count_in_state(&store, BatchState::Committed) == count
    });
}

#[test]
fn several_batches_of_a_service_are_under_way() {
    let harness = BatchHarness::sawtooth_with(blocks(Duration::from_millis(200), 20));
    let server = harness.serve();
    assert_eq!(in_flight(&server, "largest"), 250);
    let batches = independent(100);
    server.submit(&batches);
    let most = wait_for("several are under way", || {
        Some(in_flight(&server, "under_way")).filter(|under_way| *under_way >= 20)
    });
    println!("{most} were under way");
    wait_until_committed(&harness, batches.len());
    wait_until("none is under way", || in_flight(&server, "under_way") == 0);
    assert!(in_flight(&server, "window") >= INITIAL, "the ledger was never busy");
    server.stop();
    let order: Vec<_> = batches.iter().map(|signed| signed.message().clone()).collect();
    let audit = harness.ledger.audit_state(&order);
    assert!(audit.is_clean(), "{audit:#?}");
}

#[test]
fn serial_strategy_has_one_batch_under_way() {
    let harness = BatchHarness::sawtooth_with(|ledger| ledger.pending_for(NEVER));
    let server = harness.serve_with(&[("--services-strategy", "serial")]);
    server.submit(&independent(20));
    wait_until("one is under way", || in_flight(&server, "under_way") == 1);
    let store = harness.store();
    wait_until("it was accepted", || count_in_state(&store, BatchState::Pending) == 1);
    assert_eq!(count_in_state(&store, BatchState::New), 19);
}

/// Small blocks make the queue of the ledger short.
#[test]
fn busy_ledger_lowers_the_window_until_it_takes_all() {
    let harness = BatchHarness::sawtooth_with(blocks(Duration::from_millis(100), 2));
    let server = harness.serve();
    let batches = independent(150);
    server.submit(&batches);
    wait_until("the window was lowered", || in_flight(&server, "window") < INITIAL / 2);
    wait_until_committed(&harness, batches.len());
    assert!(in_flight(&server, "window") >= 1);
    server.stop();
}

#[test]
fn batches_that_never_end_do_not_stop_the_others() {
    let harness = BatchHarness::sawtooth_with(blocks(Duration::from_millis(100), 30));
    let server = harness.serve_with(&[("--testing-longest-delay", "150ms")]);
    let (usual, batches) = (&independent(69)[..1], &independent(69)[1..]);
    server.submit(usual);
    wait_until_committed(&harness, 1);
    harness.ledger.inject(Fault::StaysPending, When::Next(8));
    server.submit(&batches[..8]);
    let store = harness.store();
    wait_until("the first ones are at the ledger", || {
        count_in_state(&store, BatchState::Pending) == 8
    });
    harness.ledger.inject(Fault::Busy, When::Always);
    server.submit(&batches[8..]);
    wait_until("the window is full of them", || in_flight(&server, "window") < 8);
    harness.ledger.inject(Fault::Busy, When::Never);
    let started = Instant::now();
    wait_until_committed(&harness, 61);
    let elapsed = started.elapsed();
    println!("the others were committed after {elapsed:?}");
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
    assert_eq!(in_flight(&server, "overdue"), 8);
    server.stop();
}

#[test]
fn batches_of_an_earlier_run_are_under_way() {
    let harness = BatchHarness::sawtooth_with(blocks(NEVER, 20));
    let server = harness.serve();
    server.submit(&independent(200));
    let store = harness.store();
    let pending = || count_in_state(&store, BatchState::Pending) as u64;
    // The first block may commit some of them, and then the window grows.
    wait_until("the window is full", || pending() >= INITIAL);
    server.stop();
    let server = harness.serve();
    wait_until("they are found", || in_flight(&server, "under_way") >= INITIAL);
    assert!(pending() <= 2 * INITIAL, "the lanes limit what is sent");
}
