//! Exit codes, and a start that waits for its database.

use std::net::TcpListener;

use grid_batch_test_postgres::{RestartablePostgres, StopMode, TestDatabase};
use grid_batch_test_support::process::{TestProcess, run};

use crate::harness::BatchHarness;

/// The exit codes that docs/reference/exit-codes.md describes.
const OTHER: Option<i32> = Some(1);
const USAGE: Option<i32> = Some(2);
const UNAVAILABLE: Option<i32> = Some(69);
const CONFIGURATION: Option<i32> = Some(78);

const UNREACHABLE: &str = "postgres://u@127.0.0.1:1/d";

#[test]
fn exit_code_tells_why_a_server_did_not_start() {
    let harness = BatchHarness::scabbard(1);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (flags, expected) in [
        (&[("--surplus", "1")][..], USAGE),
        (&[("--poll-interval", "soon")], CONFIGURATION),
        (&[("--ledger-kind", "")], CONFIGURATION),
        (&[("--ledger-key-file", "/nowhere/key")], CONFIGURATION),
        (&[("--database", "sqlite:///nowhere/at/all.db")], CONFIGURATION),
        (&[("--database", UNREACHABLE)], UNAVAILABLE),
        (&[("--listen", &taken)], UNAVAILABLE),
        (&[("--listen", "127.0.0.1:1")], CONFIGURATION),
    ] {
        // A port below 1024 is refused by the system only for users other than root.
        if flags == [("--listen", "127.0.0.1:1")] && is_root() {
            continue;
        }
        let output = run(harness.command(flags));
        assert_eq!(output.exit_code, expected, "{flags:?}: {output:?}");
    }
}

fn is_root() -> bool {
    let output = std::process::Command::new("id").arg("-u").output().unwrap();
    output.stdout == b"0\n"
}

#[test]
fn wrong_password_and_missing_database_are_configuration() {
    let database = TestDatabase::create();
    let (address, options) = database.url().rsplit_once('?').unwrap();
    let (server, _) = address.rsplit_once('/').unwrap();
    let missing = format!("{server}/no_such_database?{options}");
    let harness = BatchHarness::scabbard(1).with_database(&missing);
    let output = run(harness.command(&[("--store-start-timeout", "60s")]));
    assert_eq!(output.exit_code, CONFIGURATION, "{output:?}");
    assert!(output.stderr.contains("no_such_database"), "{output:?}");
}

#[test]
fn exit_code_tells_why_a_command_failed() {
    let harness = BatchHarness::scabbard(1);
    harness.serve().stop();
    let id = "ab".repeat(64);
    let unreachable = ["show", "x::y", &id, "--database", UNREACHABLE];
    for (arguments, expected) in [
        (&["show", "x::y", &id][..], OTHER),
        (&["show", "x::y", "--surplus"], USAGE),
        (&["show", "x::y", &id, "--poll-interval", "soon"], CONFIGURATION),
        (&unreachable, UNAVAILABLE),
    ] {
        let output = harness.run_command(arguments);
        assert_eq!(output.exit_code, expected, "{arguments:?}: {output:?}");
    }
}

#[test]
fn second_server_of_a_file_can_be_started_later() {
    let harness = BatchHarness::scabbard(1);
    let first = harness.serve();
    let second = run(harness.command(&[]));
    assert_eq!(second.exit_code, UNAVAILABLE, "{second:?}");
    first.stop();
}

#[test]
fn start_waits_for_the_database() {
    let postgres = RestartablePostgres::start(100);
    postgres.stop(StopMode::Fast);
    let harness = BatchHarness::scabbard(1).with_database(&postgres.url());
    let flags = [("--store-start-timeout", "60s"), ("--log", "info")];
    let mut process = TestProcess::spawn(harness.command(&flags));
    process.wait_for_log("the database cannot be reached; waiting for it");
    postgres.start_again();
    process.wait_for_stdout("Accepting ");
    process.signal("TERM");
    let output = process.wait();
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert_eq!(output.stderr.matches("waiting for it").count(), 1, "{}", output.stderr);
    assert!(output.stderr.contains("the wait for the database has ended"), "{}", output.stderr);
}

#[test]
fn start_that_waited_too_long_says_so() {
    let harness = BatchHarness::scabbard(1).with_database(UNREACHABLE);
    let output = run(harness.command(&[("--store-start-timeout", "300ms"), ("--log", "off")]));
    assert_eq!(output.exit_code, UNAVAILABLE, "{output:?}");
    assert!(output.error_message().contains("the database cannot be reached"), "{output:?}");
}

#[test]
fn signal_ends_the_wait_for_the_database() {
    let harness = BatchHarness::scabbard(1).with_database(UNREACHABLE);
    let flags = [("--store-start-timeout", "10m"), ("--log", "warn")];
    let process = TestProcess::spawn(harness.command(&flags));
    process.wait_for_log("waiting for it");
    process.signal("TERM");
    let output = process.wait();
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
}
