//! How much memory the batches on their way to the ledger need.

use std::time::Duration;

use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::batches::{SignedBatch, large_batch};

use crate::harness::{BatchHarness, BatchServer, LONG_LEDGER_TIMEOUTS};

const MEBIBYTE: usize = 1 << 20;

/// No process listens on this port.
const LEDGER_THAT_IS_DOWN: (&str, &str) = ("--ledger-urls", "http://127.0.0.1:1");

fn serve_with(harness: &BatchHarness, flags: &[(&str, &str)]) -> BatchServer {
    harness.serve_with(&[LONG_LEDGER_TIMEOUTS, flags].concat())
}

/// A ledger that keeps each POST for a moment, so that many are on their way at once.
fn slow_ledger(services: usize) -> BatchHarness {
    BatchHarness::scabbard_with(services, |ledger| {
        ledger.fault(Fault::LateAnswer(Duration::from_millis(100)), When::Always)
    })
}

/// A server takes one batch of each service while the ledger is down, and is stopped.
fn take_while_the_ledger_is_down(
    harness: &BatchHarness,
    payload_length: usize,
) -> Vec<SignedBatch> {
    let server = serve_with(harness, &[LEDGER_THAT_IS_DOWN]);
    let batches: Vec<SignedBatch> =
        harness.services.iter().map(|service| large_batch(service, 1, payload_length)).collect();
    server.submit(&batches);
    server.stop();
    batches
}

#[test]
fn restart_with_many_large_batches_needs_little_memory() {
    const BATCHES: usize = 40;
    let length = 3 * MEBIBYTE;
    // SQLite has caches, which would be counted.
    let database = TestDatabase::create();
    let harness = slow_ledger(BATCHES).with_database(database.url());
    let idle = serve_with(&harness, &[]);
    let idle_memory = idle.process.peak_memory();
    idle.stop();
    let batches = take_while_the_ledger_is_down(&harness, length);

    let server = serve_with(&harness, &[("--testing-memory-limit", "8388608")]);
    harness.wait_until_all_committed(&batches);
    let needed = server.process.peak_memory() - idle_memory;
    println!("{} MiB more than an idle server", needed / MEBIBYTE as u64);
    // Half of what the batches have together, although each is copied into a request.
    assert!(needed < (BATCHES * length / 2) as u64, "{needed} bytes");
    server.stop();
}
