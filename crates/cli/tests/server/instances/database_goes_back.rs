//! A database that loses its latest commits: an asynchronous standby is promoted, or a backup is
//! restored.

use std::{
    fs,
    path::{Path, PathBuf},
};

use diesel::connection::SimpleConnection;
use grid_batch_core::batches::BatchState;
use grid_batch_test_postgres::{RestartablePostgres, Standby, StopMode};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send},
    wait::{wait_for, wait_until},
};
use serde_json::json;

use super::group::InstanceGroup;
use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// The number of batches of each service whose end the database loses.
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
    instance.process.wait_for_log("may have lost its latest commits");
    group.harness.wait_until_all_committed(&batches);
    instance.stop();
}

#[test]
fn waiting_batch_of_a_promoted_standby_is_held() {
    let postgres = RestartablePostgres::start(100);
    let group = InstanceGroup::with_database(postgres.url(), 1);
    let instance = group.start("first");
    let standby = Standby::start(&postgres);
    let batches = signed_batches(&group.harness.services, BATCHES);
    group.submit_to_frozen_ledger(&instance, &batches[..1]);
    instance.submit(&batches[1..]);
    standby.wait_until_caught_up(&postgres);

    postgres.stop(StopMode::Immediate);
    standby.promote(&postgres);
    instance.process.wait_for_log("may have lost its latest commits");
    group.harness.ledger.thaw();
    let store = group.harness.store();
    let held = wait_for("the second batch is held", || {
        let held = store.held_batches(None, 9).unwrap().pop()?;
        if held.batch_id == batches[0].batch_id {
            group.harness.decide_held_batches(&store);
            return None;
        }
        Some(held)
    });
    assert_eq!(held.batch_id, batches[1].batch_id);
    assert_eq!(group.harness.ledger.times_received(&held.batch_id), 0, "it was sent");
    let reason = held.held.unwrap().reason;
    assert!(reason.contains("the database was restored or lost its latest commits"), "{reason}");
    group.harness.wait_until_all_committed(&batches);
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
fn promoted_synchronous_standby_puts_nothing_in_doubt() {
    let postgres = RestartablePostgres::start(100);
    let group = InstanceGroup::with_database(postgres.url(), 5);
    let standby = Standby::start_synchronous(&postgres);
    let instance = group.start("first");
    group.harness.ledger.freeze();
    let batches = signed_batches(&group.harness.services, BATCHES);
    instance.submit(&batches);
    // A round whose commit is not answered is recovered only much later.
    for service in &group.harness.services {
        instance.process.wait_for_log(&format!("service={service}"));
    }
    postgres.stop(StopMode::Immediate);
    standby.promote(&postgres);
    group.harness.ledger.thaw();
    instance.process.wait_for_log("recorded the server that the database is on timeline=2");
    group.harness.wait_until_all_committed(&batches);
    let output = instance.stop_with("TERM");
    assert!(!output.stderr.contains("may have lost"), "{}", output.stderr);
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

#[test]
fn server_without_the_right_to_know_its_server_warns_once() {
    let postgres = RestartablePostgres::start(100);
    let mut connection = postgres.connect_as_superuser().unwrap();
    connection.batch_execute("revoke execute on function pg_control_system() from public").unwrap();
    let harness = BatchHarness::scabbard(1).with_database(&postgres.url());
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let output = server.stop_with("TERM");
    let warning = "the server does not report which one it is";
    assert_eq!(output.stderr.matches(warning).count(), 1, "{}", output.stderr);
}

#[test]
fn settings_that_lose_commits_are_warned_of_at_start() {
    let postgres = RestartablePostgres::start(100);
    postgres.execute("alter role grid set synchronous_commit = off");
    let standby = Standby::start(&postgres);
    standby.wait_until_caught_up(&postgres);
    let harness = BatchHarness::scabbard(1).with_database(&postgres.url());
    let output = harness.serve().stop_with("TERM");
    for warning in ["synchronous_commit is off", "synchronous_standby_names is empty"] {
        assert_eq!(output.stderr.matches(warning).count(), 1, "{}", output.stderr);
    }
}

/// The files of an SQLite database.
fn database_files(harness: &BatchHarness) -> Vec<PathBuf> {
    ["", "-wal", "-shm"]
        .map(|suffix| PathBuf::from(format!("{}{suffix}", harness.database_file().display())))
        .to_vec()
}

#[test]
fn restored_sqlite_file_repeats_nothing() {
    let harness = BatchHarness::scabbard(3);
    let server = harness.serve();
    harness.ledger.freeze();
    let batches = signed_batches(&harness.services, BATCHES);
    server.submit(&batches);
    let store = harness.store();
    wait_until("each service has sent its first batch", || {
        count_in_state(&store, BatchState::Submitting) == harness.services.len()
    });
    drop(store);
    server.process.signal("KILL");
    server.process.wait();
    let backup = |file: &PathBuf| PathBuf::from(format!("{}.backup", file.display()));
    // The log has what is not in the file yet; SQLite makes the index of the log again.
    for file in &database_files(&harness)[..2] {
        fs::copy(file, backup(file)).unwrap();
    }
    harness.ledger.thaw();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    let refused = harness.run_command(&["restored", "--reason", "a test"]);
    assert!(refused.error_message().contains("another process uses"), "{refused:?}");
    server.stop();

    database_files(&harness).iter().for_each(|file| drop(fs::remove_file(file)));
    for file in &database_files(&harness)[..2] {
        fs::copy(backup(file), file).unwrap();
    }
    let expected = "9 batches of 3 services are in doubt; each continues when evidence or a decision is \
                    found\n";
    assert_eq!(harness.run_command(&["restored", "--reason", "a test"]).stdout, expected);
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// More than the replay of a Scabbard node has as a whole.
const BEFORE: usize = 70;

/// Copies the file of a server that is stopped.
fn copy_of(harness: &BatchHarness) -> PathBuf {
    let copy = harness.path().join("copy");
    fs::copy(harness.database_file(), &copy).unwrap();
    copy
}

/// Puts a copy in the place of the database, as an operator does who does not read the manual.
fn put_back(harness: &BatchHarness, copy: &Path) {
    database_files(harness).iter().for_each(|file| drop(fs::remove_file(file)));
    fs::copy(copy, harness.database_file()).unwrap();
}

#[test]
fn earlier_sqlite_file_without_the_command_repeats_nothing() {
    let harness = BatchHarness::scabbard(1);
    let batches = signed_batches(&harness.services, BEFORE + 4);
    let (before, open) = batches.split_at(BEFORE);
    let reason = json!({"reason": "a copy is made"});
    let server = harness.serve();
    server.submit(before);
    harness.wait_until_all_committed(before);
    assert_eq!(server.post_json("/v1/pause", &reason).status, 200);
    server.submit(open);
    server.stop();
    let copy = copy_of(&harness);
    let server = harness.serve();
    assert_eq!(server.post_json("/v1/resume", &reason).status, 200);
    harness.wait_until_all_committed(&batches);
    server.process.signal("KILL");
    server.process.wait();

    put_back(&harness, &copy);
    // The node knows no statuses any more, and its replay does not show all of the last commits.
    harness.ledger.restart();
    let server = harness.serve();
    server.process.wait_for_log("the database may have lost its latest commits");
    assert_eq!(server.post_json("/v1/resume", &reason).status, 200);
    let health = || {
        let response = send(server.address, &request("GET", "/health", &[], b"")).unwrap();
        response.json()["parts"]["services"].clone()
    };
    wait_until("health says it", || {
        let part = health();
        let reason = part["reason"].as_str().unwrap_or_default();
        part["restored"] == 1 && reason.contains("when the database went back")
    });
    harness.wait_until_all_committed(&batches);
    for batch in open {
        let times = harness.ledger.times_received(&batch.batch_id);
        assert!(times <= 1, "{} was received {times} times", batch.batch_id);
    }
    wait_until("health has nothing to say", || health()["restored"] == 0);
    server.stop();
}

#[test]
fn file_that_is_replaced_under_a_server_takes_nothing() {
    let harness = BatchHarness::scabbard(1);
    let batches = signed_batches(&harness.services, 2);
    let server = harness.serve();
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    server.stop();
    let copy = copy_of(&harness);
    let server = harness.serve();
    fs::rename(copy, harness.database_file()).unwrap();
    server.process.wait_for_log("was replaced or removed while this process uses it");
    let refused = server.post(&batches[1..]).unwrap();
    assert!(refused.status >= 500, "{refused:?}");
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);
    server.process.kill();
}
