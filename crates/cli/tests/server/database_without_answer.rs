//! A database that is stopped or frozen: requests are answered soon, and the server can be stopped.

use std::time::{Duration, Instant};

use grid_batch_core::batches::BatchState;
use grid_batch_test_postgres::{RestartablePostgres, StopMode};
use grid_batch_test_support::{
    batches::{batch_ids, signed_batches},
    http::{Response, request, send},
    process::{ProcessOutput, TestProcess},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// The goal is two seconds; a busy machine may take longer. Without a limit it is at least thirty.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// The drain limit of the harness is two seconds, and the stop may take five more.
const STOP_LIMIT: Duration = Duration::from_secs(12);

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    println!("{what} took {:.2?}", started.elapsed());
    (result, started.elapsed())
}

fn get_status(server: &BatchServer, id: impl std::fmt::Display) -> Response {
    send(server.address, &request("GET", &format!("/batch_statuses?id={id}"), &[], b"")).unwrap()
}

/// Asserts that requests are answered 503 while the database does not answer, and work again after it.
fn assert_answered_soon<T>(
    begin: impl FnOnce(&RestartablePostgres) -> T,
    end: impl FnOnce(&RestartablePostgres, T),
) {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = harness.serve_with(&[("--testing-lock-timeout", "30s")]);
    let batches = signed_batches(&harness.services, 4);
    server.submit(&batches[..2]);
    harness.wait_until_all_committed(&batches[..2]);
    let outage = begin(&postgres);
    let id = batch_ids(&batches)[0].1;
    for attempt in ["first", "second"] {
        let (read, took) = timed(&format!("{attempt} read"), || get_status(&server, id));
        assert_eq!(read.status, 503, "{read:?}");
        assert!(took < ANSWER_LIMIT, "{took:?}");
        let (write, took) =
            timed(&format!("{attempt} write"), || server.post(&batches[2..3]).unwrap());
        assert_eq!(write.status, 503, "{write:?}");
        assert!(took < ANSWER_LIMIT, "{took:?}");
    }
    end(&postgres, outage);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn requests_to_a_stopped_database_are_answered_soon() {
    assert_answered_soon(
        |postgres| postgres.stop(StopMode::Fast),
        |postgres, ()| postgres.start_again(),
    );
}

#[test]
fn requests_to_a_frozen_database_are_answered_soon() {
    assert_answered_soon(|postgres| postgres.freeze(), |_, frozen| drop(frozen));
}

fn age_of_counts(server: &BatchServer) -> f64 {
    let metrics = send(server.address, &request("GET", "/metrics", &[], b"")).unwrap().body;
    let name = "grid_batch_open_batches_age_seconds ";
    let age = metrics.lines().find_map(|line| line.strip_prefix(name));
    age.map_or(f64::INFINITY, |age| age.parse().unwrap())
}

/// A read that had to wait for the database must not put off the next one.
#[test]
fn counts_are_read_again_soon_after_an_outage() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(1).with_database(&postgres.url());
    let server = harness.serve();
    wait_until("batches are counted", || age_of_counts(&server) < 1.0);
    let frozen = postgres.freeze();
    let outage = 12.0;
    wait_until("a count is overdue", || age_of_counts(&server) > outage);
    drop(frozen);
    for _ in 0..2 {
        wait_until("batches are counted", || age_of_counts(&server) < 1.0);
        wait_until("the counts are older", || age_of_counts(&server) > 2.0);
    }
    server.stop();
}

/// Stops a server, and asserts that it ends soon.
fn stop_soon(server: BatchServer) -> ProcessOutput {
    let (output, took) = timed("the stop", || server.stop_with("TERM"));
    assert!(took < STOP_LIMIT, "{took:?}: {output:?}");
    output
}

/// A server that is submitting a batch to a ledger that does not answer.
fn submitting_server(harness: &BatchHarness) -> BatchServer {
    harness.ledger.freeze();
    let server = harness.serve_with(&[
        ("--testing-lock-timeout", "30s"),
        ("--claims-idle-expiry", "1s"),
        ("--claims-full-expiry", "6s"),
    ]);
    let batches = signed_batches(&harness.services, harness.services.len());
    server.submit(&batches);
    let store = harness.store();
    wait_until("a batch is submitting", || count_in_state(&store, BatchState::Submitting) > 0);
    server
}

fn assert_continued(harness: &BatchHarness) {
    harness.ledger.thaw();
    let server = harness.serve();
    harness.wait_until_all_committed(&signed_batches(&harness.services, harness.services.len()));
    server.stop();
}

#[test]
fn server_with_a_stopped_database_ends_in_time() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = submitting_server(&harness);
    postgres.stop(StopMode::Fast);
    let output = stop_soon(server);
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(output.stderr.contains("did not stop cleanly"), "{output:?}");
    postgres.start_again();
    assert_continued(&harness);
}

#[test]
fn server_with_a_frozen_database_ends_in_time() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = submitting_server(&harness);
    let frozen = postgres.freeze();
    let output = stop_soon(server);
    drop(frozen);
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert_continued(&harness);
}

#[test]
fn server_that_starts_with_a_frozen_database_can_be_stopped() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(1).with_database(&postgres.url());
    let frozen = postgres.freeze();
    let process = TestProcess::spawn(harness.command(&[]));
    wait_until("the server waits for signals", || process.catches_signal(15));
    process.signal("TERM");
    let (output, took) = timed("the stop", || process.wait());
    drop(frozen);
    assert_eq!(output.exit_code, Some(128 + 15), "{output:?}");
    assert!(took < STOP_LIMIT, "{took:?}");
}

#[test]
fn server_with_a_frozen_ledger_ends_in_time() {
    let harness = BatchHarness::scabbard(2);
    let output = stop_soon(submitting_server(&harness));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert_continued(&harness);
}
