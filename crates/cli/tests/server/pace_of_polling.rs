//! How soon the end of a batch is noticed. No event tells of an invalid batch.

use std::{collections::HashSet, time::Duration};

use grid_batch_core::{BatchState, HeaderId, StoredBatch, Timestamp};
use grid_batch_ledger_sim::LedgerSimBuilder;
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::{BatchHarness, count_in_state};

const BATCHES: usize = 40;
/// Every fourth batch is invalid.
const INVALID_EVERY: usize = 4;
/// How long the ledger takes for a batch: not a multiple of the shortest interval.
const BLOCK_TIME: Duration = Duration::from_millis(350);
/// An invalid batch should take 1.5 times as long as a committed one. The machine may be busy.
const GREATEST_RATIO: f64 = 2.0;

/// The settings of a real ledger.
const FLAGS: &[(&str, &str)] = &[("--poll-interval", "1s"), ("--poll-longest-interval", "60s")];

/// A ledger with the times of a real one.
fn realistic(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    ledger.pending_for(BLOCK_TIME).valid_for(Duration::ZERO)
}

/// Submits all batches, of which every fourth is invalid, and returns them when they have ended.
fn end_batches(harness: &BatchHarness, more_flags: &[(&str, &str)]) -> Vec<StoredBatch> {
    let batches = signed_batches(&harness.services, BATCHES);
    let refused: HashSet<HeaderId> =
        batches.iter().step_by(INVALID_EVERY).map(|batch| batch.batch_id).collect();
    harness.ledger.refuse(move |batch| refused.contains(&batch.id()).then(|| "no".to_owned()));
    let server = harness.serve_with(&[FLAGS, more_flags].concat());
    server.submit(&batches);
    let store = harness.store();
    let count = |state| count_in_state(&store, state);
    wait_until("all batches have ended", || {
        count(BatchState::Committed) + count(BatchState::Invalid) == BATCHES
    });
    server.stop();
    batches.iter().map(|batch| store.find(&batch.batch_id).unwrap().remove(0)).collect()
}

fn assert_invalid_batches_end_as_soon_as_committed_ones(harness: &BatchHarness) {
    let ended = end_batches(harness, &[]);
    let (committed, invalid) =
        (mean_cost(&ended, BatchState::Committed), mean_cost(&ended, BatchState::Invalid));
    println!("committed: {committed:.3} s, invalid: {invalid:.3} s");
    assert!(invalid <= committed * GREATEST_RATIO, "{committed:.3} s, {invalid:.3} s");
}

/// The mean time from the end of the batch before to the end of a batch in this state, in seconds.
fn mean_cost(ended: &[StoredBatch], state: BatchState) -> f64 {
    let costs: Vec<f64> = ended
        .windows(2)
        .filter(|pair| pair[1].progress.state == state)
        .map(|pair| end(&pair[1]).since(end(&pair[0])).as_secs_f64())
        .collect();
    assert!(costs.len() >= BATCHES / INVALID_EVERY - 1, "{} {state} batches", costs.len());
    costs.iter().sum::<f64>() / costs.len() as f64
}

fn end(batch: &StoredBatch) -> Timestamp {
    batch.ended_at.unwrap()
}

#[test]
fn invalid_batches_do_not_stall_a_sawtooth_ledger() {
    let harness = BatchHarness::sawtooth_with(realistic);
    assert_invalid_batches_end_as_soon_as_committed_ones(&harness);
}

#[test]
fn invalid_batches_do_not_stall_a_scabbard_service() {
    let harness = BatchHarness::scabbard_with(1, realistic);
    assert_invalid_batches_end_as_soon_as_committed_ones(&harness);
}

/// With a tick of a second, a batch would take between one and two.
#[test]
fn batches_without_events_end_soon_after_the_ledger_has() {
    let harness = BatchHarness::sawtooth_with(realistic);
    let ended = end_batches(&harness, &[("--ledger-events", "false")]);
    let committed = mean_cost(&ended, BatchState::Committed);
    println!("committed without events: {committed:.3} s");
    assert!(committed <= BLOCK_TIME.as_secs_f64() * GREATEST_RATIO, "{committed:.3} s");
}
