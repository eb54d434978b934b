//! A database belongs to one ledger: servers of another one do not touch its batches.

use grid_batch_core::batches::BatchState;
use grid_batch_core::ledger::LedgerIdentity;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send},
    process::{ProcessOutput, TestProcess, run},
    wait::wait_until,
};

use crate::{
    GRID_BATCH,
    harness::{BatchHarness, BatchServer, count_in_state},
};

/// A killed server does not keep its services for long.
const SHORT_LEASES: [(&str, &str); 2] =
    [("--claims-idle-expiry", "1s"), ("--claims-full-expiry", "6s")];

/// A database with batches that are not submitted yet, because their server was killed while its
/// ledger did not answer.
fn with_open_batches(harness: &BatchHarness) -> Vec<SignedBatch> {
    let server = harness.serve_with(&SHORT_LEASES);
    let batches = signed_batches(&harness.services, 5);
    let (first, rest) = batches.split_at(1);
    server.submit(first);
    let store = harness.store();
    wait_until("a batch is committed", || count_in_state(&store, BatchState::Committed) == 1);
    harness.ledger.freeze();
    server.submit(rest);
    server.process.kill();
    harness.ledger.thaw();
    batches
}

/// Runs a server that must stop by itself, and asserts that the ledger got no batch from it.
#[track_caller]
fn run_stopped(harness: &BatchHarness, flags: &[(&str, &str)], stray: &LedgerSim) -> ProcessOutput {
    let output = run(harness.command(flags));
    assert_eq!(output.exit_code, Some(78), "{output:?}");
    assert_eq!(stray.record(), []);
    output
}

/// Asserts that what is still open is continued at its own ledger.
fn assert_continued(harness: &BatchHarness, batches: &[SignedBatch]) {
    let server = harness.serve();
    harness.wait_until_all_committed(batches);
    server.stop();
}

#[test]
fn instance_with_another_sawtooth_stops() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let batches = with_open_batches(&harness);
    let other = LedgerSim::sawtooth().start().unwrap();
    let flags = [("--ledger-urls", &*other.url()), ("--log", "warn")];
    let output = run_stopped(&harness, &flags, &other);
    for part in ["another ledger", &other.url(), "genesis block", "grid-batch ledger adopt"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert_continued(&harness, &batches);
}

#[test]
fn second_instance_beside_the_first_takes_nothing() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let first = harness.serve();
    let batches = signed_batches(&harness.services, 10);
    first.submit(&batches[..1]);
    let other = LedgerSim::sawtooth().start().unwrap();
    let second = TestProcess::spawn(harness.command(&[("--ledger-urls", &*other.url())]));
    first.submit(&batches[1..]);
    assert_eq!(second.wait().exit_code, Some(78));
    harness.wait_until_all_committed(&batches);
    assert_eq!(other.record(), []);
    first.stop();
}

#[test]
fn instance_with_a_node_of_each_ledger_uses_its_own() {
    let harness = BatchHarness::sawtooth();
    let batches = with_open_batches(&harness);
    let other = LedgerSim::sawtooth().start().unwrap();
    let urls = format!("{},{}", other.url(), harness.ledger.url());
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_LEDGER_URLS", urls);
    let server = BatchServer::start(command);
    harness.wait_until_all_committed(&batches);
    wait_until("the health names the node", || {
        let health = send(server.address, &request("GET", "/health", &[], &[])).unwrap();
        let reason = health.json()["reasons"][0].to_string();
        health.status == 200 && reason.contains(&*other.url()) && reason.contains("another ledger")
    });
    assert_eq!(other.record(), []);
    server.stop();
}

#[test]
fn instance_of_another_kind_stops() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(2).with_database(database.url());
    let batches = with_open_batches(&harness);
    let other = LedgerSim::sawtooth().start().unwrap();
    let flags =
        [("--ledger-kind", "sawtooth"), ("--ledger-urls", &*other.url()), ("--log", "error")];
    let output = run_stopped(&harness, &flags, &other);
    assert!(output.error_message().contains("scabbard"), "{output:?}");
    assert_continued(&harness, &batches);
}

#[test]
fn instance_with_another_ledger_name_stops() {
    let harness = BatchHarness::scabbard(1);
    let name = |name| [("--ledger-name", name), ("--log", "error")];
    harness.serve_with(&name("production")).stop();
    let output = run_stopped(&harness, &name("staging"), &harness.ledger);
    let message = output.error_message();
    assert!(message.contains("production") && message.contains("staging"), "{message}");
    harness.serve_with(&name("production")).stop();
}

#[test]
fn scabbard_without_a_name_is_refused() {
    let harness = BatchHarness::scabbard(1);
    let output = run_stopped(&harness, &[("--ledger-name", "")], &harness.ledger);
    let message = output.error_message();
    assert!(message.contains("ledger.name is not set; it is required"), "{message}");
    assert!(!harness.database_file().exists(), "a server that did not start created a database");
}

#[test]
fn database_without_a_name_gets_one_by_adopt() {
    let harness = BatchHarness::scabbard(1);
    let batches = with_open_batches(&harness);
    let store = harness.store();
    // As servers have left it that warned of a missing name.
    let unnamed = LedgerIdentity::new("scabbard");
    wait_until("the lease of the killed server is over", || {
        store.rebind_ledger(&unnamed, &OperatorRequest::program()).is_ok()
    });
    let refused =
        run_stopped(&harness, &[("--log", "error")], &LedgerSim::sawtooth().start().unwrap());
    let message = refused.error_message();
    assert!(message.contains("grid-batch ledger adopt"), "{message}");
    let adopted = harness.run_command(&["ledger", "adopt", "--reason", "a test"]);
    assert_eq!(adopted.exit_code, Some(0), "{adopted:?}");
    assert_eq!(store.ledger().unwrap().unwrap().identity.name, "test");
    assert_continued(&harness, &batches);
}

#[test]
fn demo_refuses_the_database_of_a_server() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 5);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let demo = ["demo", "--services", "1", "--batches", "5", "--database", database.url()];
    let output = run(GRID_BATCH.command(demo));
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert!(output.stderr.contains("use an empty database"), "{output:?}");
    // The server that was running has sent nothing of the demonstration.
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn server_refuses_the_database_of_a_demo() {
    let database = TestDatabase::create();
    let demo = ["demo", "--services", "1", "--batches", "5", "--database", database.url()];
    let output = run(GRID_BATCH.command(demo));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let output = run_stopped(&harness, &[("--log", "error")], &harness.ledger);
    assert!(output.error_message().contains("demo"), "{output:?}");
}

#[test]
fn node_replaced_by_another_ledger_stops_the_server() {
    let mut harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 20);
    server.submit(&batches[..10]);
    let store = harness.store();
    wait_until("all are committed", || count_in_state(&store, BatchState::Committed) == 10);
    let port = harness.ledger.address().port();
    harness.ledger = LedgerSim::sawtooth().start().unwrap();
    // The server stops as soon as it has seen the other ledger.
    server.submit(&batches[10..]);
    harness.ledger = LedgerSim::sawtooth().port(port).start().unwrap();
    let output = server.process.wait();
    assert_eq!(output.exit_code, Some(78), "{output:?}");
    assert!(output.stderr.contains("another ledger"), "{}", output.stderr);
    assert!(batches.iter().all(|batch| harness.ledger.times_received(&batch.batch_id) == 0));
    assert_eq!(count_in_state(&store, BatchState::Committed), 10);
}

#[test]
fn server_starts_while_its_ledger_is_down() {
    let mut harness = BatchHarness::sawtooth();
    let port = harness.ledger.address().port();
    harness.ledger = LedgerSim::sawtooth().start().unwrap();
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_LEDGER_URLS", format!("http://127.0.0.1:{port}"));
    let server = BatchServer::start(command);
    let batches = signed_batches(&harness.services, 5);
    server.submit(&batches);
    server.process.wait_for_log("the server starts without its ledger");
    let health = send(server.address, &request("GET", "/health", &[], &[])).unwrap();
    assert_eq!(health.status, 503);
    let reason = health.json()["reasons"][0].to_string();
    assert!(reason.contains("no node has confirmed which ledger"), "{reason}");
    assert_eq!(count_in_state(&harness.store(), BatchState::New), batches.len());

    harness.ledger = LedgerSim::sawtooth().port(port).start().unwrap();
    harness.wait_until_all_committed(&batches);
    let health = send(server.address, &request("GET", "/health", &[], &[])).unwrap();
    assert_eq!(health.status, 200, "{health:?}");
    server.stop();
}

/// The command `ledger` with the settings of the harness's servers.
fn ledger_command(harness: &BatchHarness, arguments: &[&str], other: &LedgerSim) -> ProcessOutput {
    let url = other.url();
    let arguments = ["ledger"].iter().chain(arguments).copied().chain(["--ledger-urls", &*url]);
    let mut command = GRID_BATCH.command(arguments);
    let serve = harness.command(&[]);
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(command)
}

#[test]
fn database_is_bound_to_another_ledger_only_on_request() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    let other = LedgerSim::sawtooth().start().unwrap();
    let adopt = |arguments: &[&str]| {
        ledger_command(&harness, &[&["adopt", "--reason", "a test"], arguments].concat(), &other)
    };

    let running = adopt(&[]);
    assert!(running.stderr.contains("instances are running"), "{running:?}");
    server.stop();
    let dry_run = adopt(&["--dry-run"]);
    assert_eq!(dry_run.exit_code, Some(0), "{dry_run:?}");
    assert!(dry_run.stdout.contains("Nothing changed"), "{dry_run:?}");
    run_stopped(&harness, &[("--ledger-urls", &*other.url())], &other);

    let adopted = adopt(&[]);
    assert_eq!(adopted.exit_code, Some(0), "{adopted:?}");
    assert!(adopted.stdout.lines().all(|line| line.chars().count() <= 80), "{adopted:?}");
    let server = harness.serve_with(&[("--ledger-urls", &*other.url())]);
    server.submit(&batches[1..]);
    let store = harness.store();
    wait_until("both are committed", || count_in_state(&store, BatchState::Committed) == 2);
    assert_eq!(other.record().len(), 1);
    server.stop();
    let shown = ledger_command(&harness, &["show"], &other);
    assert_eq!(shown.stdout.matches("  kind: sawtooth\n").count(), 2, "{shown:?}");
    assert_eq!(adopt(&[]).exit_code, Some(0), "it is bound to it already");
}

#[test]
fn services_of_another_kind_are_left_alone() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let scabbard_batches = signed_batches(&harness.services, 5);
    harness.ledger.freeze();
    server.submit(&scabbard_batches);
    let store = harness.store();
    wait_until("one is submitted", || count_in_state(&store, BatchState::New) == 4);
    server.stop();
    harness.ledger.thaw();

    let sawtooth = LedgerSim::sawtooth().start().unwrap();
    let url = sawtooth.url();
    let kind = ["adopt", "--reason", "a test", "--ledger-kind", "sawtooth"];
    let adopted = ledger_command(&harness, &kind, &sawtooth);
    assert_eq!(adopted.exit_code, Some(0), "{adopted:?}");
    let flags = [("--ledger-kind", "sawtooth"), ("--ledger-urls", &*url), ("--log", "warn")];
    let server = harness.serve_with(&flags);
    let batches = signed_batches(&["global".to_owned()], 20);
    server.submit(&batches);
    wait_until("all are committed", || count_in_state(&store, BatchState::Committed) == 20);
    assert_eq!(count_in_state(&store, BatchState::New), 4);
    assert!(store.held_batches(None, 10).unwrap().is_empty());
    assert_eq!(sawtooth.record().len(), 20);
    let log = server.process.stderr();
    assert_eq!(log.matches("the ledger cannot have this service").count(), 1, "{log}");
    server.stop();
}
