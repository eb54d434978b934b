//! How soon the end of a batch is noticed. No event tells of an invalid batch.

use std::{collections::HashSet, time::Duration};

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_ledger_sim::{ExecutionResult, LedgerSimBuilder, RequestKind};
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
const FLAGS: &[(&str, &str)] = &[("--poll-interval", "1s"), ("--testing-longest-interval", "60s")];

/// A ledger with the times of a real one.
fn realistic(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    ledger.pending_for(BLOCK_TIME).valid_for(Duration::ZERO)
}

/// Submits all batches, of which every fourth is invalid, and returns them when they have ended.
fn end_batches(harness: &BatchHarness, more_flags: &[(&str, &str)]) -> Vec<StoredBatch> {
    end_all(harness, more_flags, 0, INVALID_EVERY)
}

/// The same, and every so many batches one is invalid; not the first ones.
fn end_every_batch(harness: &BatchHarness, invalid_every: usize) {
    end_all(harness, &[], invalid_every - 1, invalid_every);
}

fn end_all(
    harness: &BatchHarness,
    more_flags: &[(&str, &str)],
    first_invalid: usize,
    invalid_every: usize,
) -> Vec<StoredBatch> {
    let batches = signed_batches(&harness.services, BATCHES);
    let refused = batches.iter().skip(first_invalid).step_by(invalid_every);
    let refused: HashSet<ItemId> = refused.map(|batch| batch.batch_id).collect();
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

/// How long a genuine Splinter node takes until it says whether a batch is valid, and then for the votes.
const EXECUTED_AFTER: Duration = Duration::from_millis(100);
const VOTED_FOR: Duration = Duration::from_millis(300);
/// After these, how long batches take is learned.
const LEARNED_FROM: usize = 12;

fn circuit() -> BatchHarness {
    BatchHarness::scabbard_with(1, |ledger| ledger.pending_for(EXECUTED_AFTER).valid_for(VOTED_FOR))
}

/// The rate of a service whose every tenth batch is invalid, as a share of that of a ledger which always has the next
/// batch: as if all were posted ahead.
#[test]
fn invalid_batches_cost_a_service_little_of_its_rate() {
    let harness = circuit();
    end_every_batch(&harness, 10);
    let record = harness.ledger.record();
    let ends = &record[LEARNED_FROM..];
    let time = |result| match result {
        ExecutionResult::Applied => EXECUTED_AFTER + VOTED_FOR,
        ExecutionResult::Invalid => EXECUTED_AFTER,
    };
    let needed: Duration = ends[1..].iter().map(|entry| time(entry.result)).sum();
    let took = ends[ends.len() - 1].time.since(ends[0].time);
    let share = needed.as_secs_f64() / took.as_secs_f64();
    println!("{needed:.1?} of {took:.1?}: {share:.3}");
    assert!(share >= 0.9, "{share:.3}");
}

/// The time from a commit to the POST of the next batch, as a share of the time of a commit.
#[test]
fn next_batch_is_posted_soon_after_a_commit() {
    let harness = circuit();
    end_every_batch(&harness, BATCHES + 1);
    let (record, requests) = (harness.ledger.record(), harness.ledger.requests());
    let posts: Vec<_> =
        requests.iter().filter(|request| request.kind == RequestKind::Submission).collect();
    assert_eq!((record.len(), posts.len()), (BATCHES, BATCHES));
    let next = record.iter().zip(&posts[1..]).skip(LEARNED_FROM);
    let mut gaps: Vec<Duration> =
        next.map(|(commit, post)| post.received_at.since(commit.time)).collect();
    gaps.sort_unstable();
    let median = gaps[gaps.len() / 2];
    let share = median.as_secs_f64() / (EXECUTED_AFTER + VOTED_FOR).as_secs_f64();
    println!("median {median:.1?}, longest {:.1?}: {share:.3}", gaps[gaps.len() - 1]);
    assert!(share <= 0.1, "{share:.3}");
}

/// With a tick of a second, a batch would take between one and two.
#[test]
fn batches_without_events_end_soon_after_the_ledger_has() {
    let harness = BatchHarness::sawtooth_with(realistic);
    let ended = end_batches(&harness, &[("--ledger-event-sockets", "0")]);
    let committed = mean_cost(&ended, BatchState::Committed);
    println!("committed without events: {committed:.3} s");
    assert!(committed <= BLOCK_TIME.as_secs_f64() * GREATEST_RATIO, "{committed:.3} s");
}
