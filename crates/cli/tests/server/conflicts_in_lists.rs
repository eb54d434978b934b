//! Conflicting batches that are sent together to a Sawtooth node that publishes alone.

use std::time::Duration;

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{
    ExecutionResult, Fault, LedgerSim, LedgerSimBuilder, RandomBatches, When,
};
use grid_batch_protocol::Batch;
use grid_batch_store::Store;
use grid_batch_test_support::{batches::SignedBatch, wait::wait_until};

use crate::{
    harness::{BatchHarness, BatchServer, count_in_state},
    late_arrivals::wait_for_searches,
};

const BLOCK_INTERVAL: Duration = Duration::from_millis(100);
const BLOCK_SIZE: usize = 10;
const BATCHES: usize = 150;

fn blocks(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    ledger.pending_for(Duration::ZERO).block_interval(BLOCK_INTERVAL).block_size(BLOCK_SIZE)
}

/// Each conflicts with all others.
fn conflicting(count: usize) -> Vec<Batch> {
    let mut random = RandomBatches::new(5);
    (0..count).map(|_| random.conflicting()).collect()
}

fn submit(server: &BatchServer, batches: &[Batch]) {
    let list: Vec<SignedBatch> =
        batches.iter().map(|batch| SignedBatch::new("global", batch.clone())).collect();
    server.submit(&list);
}

fn count_applied(ledger: &LedgerSim) -> usize {
    ledger.record().iter().filter(|entry| entry.result == ExecutionResult::Applied).count()
}

fn wait_until_ended(store: &Store, batches: &[Batch]) {
    wait_until("all batches have ended", || {
        [BatchState::Committed, BatchState::Invalid]
            .map(|state| count_in_state(store, state))
            .iter()
            .sum::<usize>()
            == batches.len()
    });
}

/// Waits until all are committed, and compares the ledger's state with that of applying them one by one.
#[track_caller]
fn wait_until_applied_in_order(harness: &BatchHarness, batches: &[Batch]) {
    let store = harness.store();
    wait_until_ended(&store, batches);
    assert_eq!(count_in_state(&store, BatchState::Invalid), 0);
    assert_eq!(count_applied(&harness.ledger), batches.len(), "none is applied twice");
    let audit = harness.ledger.audit_state(batches);
    assert!(audit.is_clean(), "{audit:#?}");
}

#[test]
fn conflicting_batches_are_sent_together() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve();
    let batches = conflicting(BATCHES);
    submit(&server, &batches);
    wait_until_applied_in_order(&harness, &batches);
    server.stop();
    assert!(harness.ledger.most_waiting() > BLOCK_SIZE, "the node never had several blocks");
}

/// Kills the node again and again while it has a part of a list, and starts it a moment later.
fn check_kills(kill: impl Fn(&LedgerSim), start: impl Fn(&LedgerSim)) {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve();
    let (batches, store) = (conflicting(BATCHES), harness.store());
    submit(&server, &batches);
    for part in 1..=4 {
        let applied = part * BATCHES / 6;
        wait_until("more batches are applied, and others are pending", || {
            count_applied(&harness.ledger) >= applied
                && count_in_state(&store, BatchState::Pending) > 0
        });
        kill(&harness.ledger);
        start(&harness.ledger);
    }
    wait_until_applied_in_order(&harness, &batches);
    server.stop();
}

#[test]
fn killed_node_applies_none_out_of_order() {
    check_kills(LedgerSim::kill, LedgerSim::start_again);
}

#[test]
fn node_that_lost_its_queue_applies_none_out_of_order() {
    check_kills(LedgerSim::restart, |_| ());
}

/// Its REST API stays, and may pass on what it was given meanwhile.
#[test]
fn killed_validator_applies_none_out_of_order() {
    let crash = |ledger: &LedgerSim| ledger.crash_validator(Duration::from_millis(300));
    check_kills(crash, LedgerSim::start_validator);
}

/// Lists arrive late, get no answer, or are refused.
#[test]
fn lists_that_fail_are_applied_in_order() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve();
    let batches = conflicting(60);
    for fault in [Fault::TimedOut, Fault::ResetAfter, Fault::ResetBefore, Fault::Busy] {
        harness.ledger.inject(fault, When::Sometimes(0.15));
    }
    harness.ledger.inject(Fault::LateArrival(Duration::from_millis(2_500)), When::Next(1));
    submit(&server, &batches);
    wait_until("a part is applied", || count_applied(&harness.ledger) > 20);
    harness.ledger.heal();
    wait_until_applied_in_order(&harness, &batches);
    server.stop();
}

/// A list arrives long after it was sent, when a busy node has refused what was sent since. Its first batch is invalid,
/// and must not be sent again behind the others.
#[test]
fn list_that_may_arrive_late_is_not_sent_again() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let (batches, store) = (conflicting(11), harness.store());
    submit(&server, &batches[..1]);
    wait_until("a list is possible", || count_in_state(&store, BatchState::Committed) == 1);
    harness.ledger.inject(Fault::LateArrival(Duration::from_hours(1)), When::Next(1));
    submit(&server, &batches[1..]);
    wait_until("a list is late", || harness.ledger.kept_submissions() == 1);
    harness.ledger.inject(Fault::Busy, When::Always);
    wait_for_searches(&harness);
    harness.ledger.inject(Fault::Invalid, When::Next(1));
    harness.ledger.inject(Fault::Busy, When::Never);
    harness.ledger.deliver_late();
    wait_until_ended(&store, &batches);
    server.stop();
    let audit = harness.ledger.audit_state(&batches);
    assert!(audit.is_clean(), "{audit:#?}");
    assert_eq!(count_in_state(&store, BatchState::Invalid), 1);
}

/// A node forgets in a restart which batches it found invalid. Those behind them may be committed by then.
#[test]
fn invalid_batches_of_lists_are_not_applied_after_later_ones() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve();
    let (batches, store) = (conflicting(BATCHES), harness.store());
    harness.ledger.inject(Fault::Invalid, When::Sometimes(0.2));
    submit(&server, &batches);
    for part in 1..=4 {
        wait_until("more batches are applied", || {
            harness.decide_held_batches(&store);
            count_applied(&harness.ledger) >= part * BATCHES / 8
        });
        harness.ledger.restart();
    }
    wait_until("all batches have ended", || {
        harness.decide_held_batches(&store);
        [BatchState::Committed, BatchState::Invalid]
            .map(|state| count_in_state(&store, state))
            .iter()
            .sum::<usize>()
            == batches.len()
    });
    server.stop();
    let audit = harness.ledger.audit_state(&batches);
    assert!(audit.is_clean(), "{audit:#?}");
}

#[test]
fn killed_server_leaves_lists_in_order() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let batches = conflicting(BATCHES);
    let mut server = harness.serve();
    submit(&server, &batches);
    for part in 1..=3 {
        wait_until("more batches are applied", || {
            count_applied(&harness.ledger) >= part * BATCHES / 5
        });
        server.process.kill();
        server = harness.serve();
    }
    wait_until_applied_in_order(&harness, &batches);
    server.stop();
}

/// A second node joins, which may publish as well.
#[test]
fn conflicting_batches_are_sent_singly_to_a_node_with_peers() {
    let harness = BatchHarness::sawtooth_with(blocks);
    let server = harness.serve_with(&[("--log", "info")]);
    let (batches, store) = (conflicting(60), harness.store());
    submit(&server, &batches);
    wait_until("some are pending", || count_in_state(&store, BatchState::Pending) > 1);
    let joins = LedgerSim::sawtooth().join_chain_of(&harness.ledger, Duration::ZERO);
    let second = joins.start().unwrap();
    server.process.wait_for_log("the node has peers");
    wait_until("the last list has ended", || count_in_state(&store, BatchState::Pending) <= 1);
    let mut most_pending = 0;
    wait_until("all batches have ended", || {
        most_pending = most_pending.max(count_in_state(&store, BatchState::Pending));
        count_in_state(&store, BatchState::Committed) == batches.len()
    });
    assert!(most_pending <= 1, "{most_pending} were under way");
    wait_until_applied_in_order(&harness, &batches);
    server.stop();
    drop(second);
}
