//! How many batches the strategies commit in a second, compared with a plain client that posts ahead to the
//! ledger without any guarantee. Blocks are published every second, with at most as many batches as
//! `GRID_BATCH_TEST_BLOCK_SIZE` says. The default is about what a genuine node commits in a second, and little
//! work for a busy machine; with 100 this measures the server, too.

use std::{
    env, thread,
    time::{Duration, Instant},
};

use grid_batch_core::{Clock, SystemClock};
use grid_batch_ledger_sim::{ExecutionResult, LedgerSim, LedgerSimBuilder, RandomBatches};
use grid_batch_protocol::Batch;
use grid_batch_test_support::{batches::SignedBatch, wait::wait_until};

use crate::harness::{BatchHarness, post_to_ledger};

const BLOCK_INTERVAL: Duration = Duration::from_secs(1);
const BLOCK_SIZE: usize = 25;
/// Enough batches under way for a block, and for the next one while that is recorded.
const TWO_BLOCKS: &str = "250";
/// How many blocks the independent batches fill.
const BLOCKS: usize = 10;
/// Each takes a block of its own, or several where it must wait for the one before.
const FEW: usize = 8;
/// A client of the server posts this many at once.
const LIST: usize = 50;

/// The least share of the plain client's rate.
const OF_PLAIN: f64 = 0.8;

/// The usual pace, which the other tests make faster.
const USUAL_PACE: &[(&str, &str)] = &[
    ("--log", "warn"),
    ("--poll-interval", "1s"),
    ("--testing-longest-interval", "60s"),
    ("--testing-queue-poll-interval", "1s"),
    ("--testing-first-delay", "100ms"),
    ("--testing-longest-delay", "5s"),
    ("--testing-quiet-after", "60s"),
    ("--poll-hold-after", "60s"),
    ("--ledger-request-timeout", "10s"),
    ("--testing-sending-limit", "11s"),
    ("--testing-total-limit", "12s"),
    ("--testing-drain-limit", "12s"),
    ("--testing-accept-absence-after", "30s"),
    ("--ledger-coordinator-timeout", "30s"),
    ("--ledger-late-arrival-limit", "60s"),
];

fn blocks(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    ledger.pending_for(Duration::ZERO).block_interval(BLOCK_INTERVAL).block_size(block_size())
}

fn block_size() -> usize {
    let given = env::var("GRID_BATCH_TEST_BLOCK_SIZE").ok();
    given.map_or(BLOCK_SIZE, |text| text.parse().unwrap())
}

fn independent(count: usize) -> Vec<Batch> {
    let mut random = RandomBatches::new(1);
    (0..count).map(|_| random.independent()).collect()
}

fn conflicting(count: usize) -> Vec<Batch> {
    let mut random = RandomBatches::new(2);
    (0..count).map(|_| random.conflicting()).collect()
}

fn count_applied(ledger: &LedgerSim) -> usize {
    ledger.record().iter().filter(|entry| entry.result == ExecutionResult::Applied).count()
}

/// Batches in a second, from the first request until the ledger has applied all. All begin at the same time of
/// a block interval, because the part of it that they wait first would otherwise differ.
fn measure(ledger: &LedgerSim, batches: usize, send_all: impl FnOnce()) -> f64 {
    let interval = BLOCK_INTERVAL.as_micros() as i64;
    let passed = || SystemClock.now().as_micros().rem_euclid(interval);
    wait_until("a block interval begins", || passed() < interval / 10);
    let started = Instant::now();
    send_all();
    wait_until("all batches are applied", || count_applied(ledger) == batches);
    batches as f64 / started.elapsed().as_secs_f64()
}

/// Posts one batch after the other, without waiting for the end of any, and again while the ledger is busy.
fn plain_client(batches: &[Batch]) -> f64 {
    let ledger = blocks(LedgerSim::sawtooth()).start().unwrap();
    measure(&ledger, batches.len(), || {
        batches.iter().for_each(|batch| post_until_accepted(&ledger, batch));
    })
}

fn post_until_accepted(ledger: &LedgerSim, batch: &Batch) {
    let batch = SignedBatch::new("global", batch.clone());
    loop {
        match post_to_ledger(ledger, &batch).unwrap().status {
            202 => return,
            429 => thread::sleep(Duration::from_millis(20)),
            status => panic!("the ledger answers {status}"),
        }
    }
}

fn through_the_server(strategy: &str, batches: &[Batch]) -> f64 {
    let harness = BatchHarness::sawtooth_with(blocks);
    let own = [("--services-strategy", strategy), ("--testing-in-flight-per-service", TWO_BLOCKS)];
    let server = harness.serve_with(&[USUAL_PACE, &own].concat());
    let rate = measure(&harness.ledger, batches.len(), || {
        for list in batches.chunks(LIST) {
            let list: Vec<_> =
                list.iter().map(|batch| SignedBatch::new("global", batch.clone())).collect();
            server.submit(&list);
        }
    });
    server.stop();
    let audit = harness.ledger.audit_state(batches);
    assert!(audit.is_clean(), "{audit:#?}");
    rate
}

#[test]
fn parallel_is_almost_as_fast_as_posting_ahead() {
    let batches = independent(BLOCKS * block_size());
    let plain = plain_client(&batches);
    let parallel = through_the_server("parallel", &batches);
    let serial = through_the_server("serial", &independent(FEW));
    println!("independent: plain {plain:.1}/s, parallel {parallel:.1}/s, serial {serial:.2}/s");
    assert!(parallel >= OF_PLAIN * plain, "parallel {parallel:.1}/s, plain {plain:.1}/s");
}

/// One node publishes, so what conflicts is sent in lists.
#[test]
fn parallel_is_almost_as_fast_on_conflicting_batches() {
    let batches = conflicting(BLOCKS * block_size());
    let plain = plain_client(&batches);
    let parallel = through_the_server("parallel", &batches);
    println!("conflicting: plain {plain:.1}/s, parallel {parallel:.1}/s");
    assert!(parallel >= OF_PLAIN * plain, "parallel {parallel:.1}/s, plain {plain:.1}/s");
}
