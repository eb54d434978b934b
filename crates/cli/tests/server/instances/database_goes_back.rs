//! A database that loses its latest commits: an asynchronous standby is promoted, or a backup is
//! restored.

use std::fs;

use grid_batch_core::BatchState;
use grid_batch_test_postgres::{RestartablePostgres, Standby, StopMode};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use super::group::InstanceGroup;
use crate::harness::{BatchHarness, BatchServer, count_all, count_in_state};

/// How many batches of each service the database loses the end of.
const BATCHES: usize = 3;

/// Stores batches that the standby has as open, and that are committed after it has stopped.
fn commit_without_the_standby(
    harness: &BatchHarness,
    server: &BatchServer,
    postgres: &RestartablePostgres,
) -> (Standby, Vec<SignedBatch>) {
    let mut standby = Standby::start(postgres);
    let batches = signed_batches(&harness.services, BATCHES);
    harness.ledger.freeze();
    server.submit(&batches);
    let store = harness.store();
    wait_until("each service has sent its first batch", || {
        count_in_state(&store, BatchState::Submitting) == harness.services.len()
    });
    standby.wait_until_caught_up(postgres);
    standby.stop(postgres);
    harness.ledger.thaw();
    harness.wait_until_all_committed(&batches);
    (standby, batches)
}

#[test]
fn promoted_asynchronous_standby_repeats_nothing() {
    let postgres = RestartablePostgres::start(100);
    let group = InstanceGroup::with_database(postgres.url(), 5);
    let instance = group.start("first");
    let (standby, batches) = commit_without_the_standby(&group.harness, &instance, &postgres);

    postgres.stop(StopMode::Immediate);
    standby.promote(&postgres);
    group.harness.wait_until_all_committed(&batches);
    instance.process.wait_for_log("may have lost its latest commits");
    instance.stop();
}

#[test]
fn new_process_on_a_promoted_standby_repeats_nothing() {
    let postgres = RestartablePostgres::start(100);
    let group = InstanceGroup::with_database(postgres.url(), 5);
    let instance = group.start("first");
    let (standby, batches) = commit_without_the_standby(&group.harness, &instance, &postgres);

    instance.process.signal("KILL");
    instance.process.wait();
    postgres.stop(StopMode::Immediate);
    standby.promote(&postgres);
    let instance = group.start("second");
    group.harness.wait_until_all_committed(&batches);
    instance.stop();
}

#[test]
fn sawtooth_continues_alone_on_a_promoted_standby() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::sawtooth().with_database(&postgres.url());
    let server = harness.serve();
    let (standby, batches) = commit_without_the_standby(&harness, &server, &postgres);

    postgres.stop(StopMode::Immediate);
    standby.promote(&postgres);
    let store = harness.store();
    wait_until("all batches are committed", || {
        assert!(store.held_batches(None, 9).is_ok_and(|held| held.is_empty()), "a batch is held");
        count_in_state(&store, BatchState::Committed) == batches.len()
    });
    harness.wait_until_all_committed(&batches);
    server.stop();
}
