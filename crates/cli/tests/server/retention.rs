//! Ended batches are removed, by the server and by the command.

use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_all, count_in_state};

/// Ended batches are removed as soon as the settings allow it.
const SOON: &[(&str, &str)] = &[
    ("--ledger-late-arrival-limit", "1s"),
    ("--poll-give-up-after", "2s"),
    ("--retention-after", "2100ms"),
    ("--testing-retention-interval", "50ms"),
];

/// An age that `SOON` allows.
const OLD: &str = "2100ms";

/// The command with the limits of `SOON`.
fn retention<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let limits = SOON[..2].iter().flat_map(|(flag, value)| [*flag, *value]);
    ["retention"].into_iter().chain(limits).chain(arguments.iter().copied()).collect()
}

/// A batch that waits for an operator: it was stored and held while the ledger was down.
fn hold_one(harness: &BatchHarness, service: &str) -> SignedBatch {
    let server = harness.serve_with(&[("--ledger-urls", "http://127.0.0.1:1")]);
    let held = signed_batch(service, 0);
    server.submit(std::slice::from_ref(&held));
    let service: ServiceId = service.parse().unwrap();
    harness.store().hold_batch(&service, &held.batch_id, "look first").unwrap();
    server.stop();
    held
}

fn commit_five(harness: &BatchHarness, flags: &[(&str, &str)]) -> (BatchServer, Vec<SignedBatch>) {
    let server = harness.serve_with(flags);
    let batches: Vec<_> = (1..=5).map(|n| signed_batch(&harness.services[0], n)).collect();
    server.submit(&batches);
    wait_until("the ledger has the batches", || {
        batches.iter().all(|batch| harness.ledger.times_received(&batch.batch_id) == 1)
    });
    (server, batches)
}

fn assert_server_removes_ended_batches(harness: &BatchHarness) {
    let held = hold_one(harness, &harness.services[1]);
    let (server, batches) = commit_five(harness, SOON);
    let store = harness.store();
    // The last two committed batches of a Scabbard service stay.
    wait_until("the held batch and two others are left", || count_all(&store) == 3);
    assert_eq!(store.find(&held.batch_id).unwrap().len(), 1);
    server.process.wait_for_log("ended batches were removed");

    // The database still knows that the ledger has applied its transaction.
    server.submit(&batches[..1]);
    wait_until("the batch has ended again, and was removed again", || count_all(&store) == 3);
    assert_eq!(harness.ledger.times_received(&batches[0].batch_id), 1);
    server.stop();
}

#[test]
fn server_removes_ended_batches_on_sqlite() {
    assert_server_removes_ended_batches(&BatchHarness::scabbard(2));
}

#[test]
fn server_removes_ended_batches_on_postgres() {
    let database = TestDatabase::create();
    assert_server_removes_ended_batches(&BatchHarness::scabbard(2).with_database(database.url()));
}

fn stdout(harness: &BatchHarness, arguments: &[&str]) -> String {
    let output = harness.run_command(arguments);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    output.stdout
}

#[test]
fn command_shows_and_removes_ended_batches() {
    let harness = BatchHarness::scabbard(2);
    hold_one(&harness, &harness.services[1]);
    let (server, _) = commit_five(&harness, &[]);
    let store = harness.store();
    wait_until("the batches end", || count_in_state(&store, BatchState::Committed) == 5);
    assert!(server.process.stderr().contains("ended batches are kept for ever"));

    let dry_run = |age| stdout(&harness, &retention(&["--older-than", age, "--dry-run"]));
    assert!(dry_run("1h").contains("nothing would be removed"));
    wait_until("the batches are old enough", || dry_run(OLD).starts_with("3 batches of "));
    assert!(dry_run(OLD).contains("would be removed"));
    assert_eq!(count_all(&store), 6);

    // The server runs meanwhile.
    let removed = stdout(&harness, &retention(&["--older-than", OLD]));
    assert!(removed.starts_with("removed 3 batches"), "{removed}");
    assert_eq!(count_all(&store), 3);
    server.stop();
}

#[test]
fn command_keeps_what_the_ledger_may_still_report() {
    let harness = BatchHarness::scabbard(1);
    drop(harness.store());
    let output = harness.run_command(&retention(&["--older-than", "2s"]));
    assert_ne!(output.exit_code, Some(0));
    assert!(output.stderr.contains("--older-than is 2s; it must be more than"), "{output:?}");
}

#[test]
fn command_needs_an_age() {
    let harness = BatchHarness::scabbard(1);
    drop(harness.store());
    let output = harness.run_command(&["retention", "--dry-run"]);
    assert_ne!(output.exit_code, Some(0));
    assert!(output.stderr.contains("--older-than"), "{}", output.stderr);
}
