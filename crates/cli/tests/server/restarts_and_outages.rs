//! Servers that are stopped, killed, or cut off from the database or the ledger.

use std::time::Duration;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_test_postgres::PostgresServer;
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::{BatchHarness, LONG_LEDGER_TIMEOUTS, count_all, count_in_state};

#[test]
fn batches_are_committed_in_order_on_scabbard() {
    let harness = BatchHarness::scabbard(5);
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 10);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// A server that is stopped under load leaves no batch in doubt, and the next server continues.
fn assert_drains_after(signal: &str) {
    let harness = BatchHarness::scabbard_with(5, |ledger| {
        ledger.fault(Fault::LateAnswer(Duration::from_millis(100)), When::Always)
    });
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 10);
    server.submit(&batches);
    wait_until("some batches are applied", || harness.ledger.record().len() >= 10);
    let output = server.stop_with(signal);
    assert_eq!(output.exit_code, Some(0), "{output:?}");

    let applied = harness.ledger.record().len();
    assert!(applied < batches.len(), "all batches were applied before the stop");
    assert_eq!(count_all(&harness.store()), batches.len());
    assert_eq!(count_in_states(&harness, [BatchState::Submitting, BatchState::InDoubt]), [0, 0]);

    harness.ledger.heal();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();
    for batch in &batches {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1);
    }
}

#[test]
fn sigterm_drains_and_the_next_server_continues() {
    assert_drains_after("TERM");
}

#[test]
fn sigint_drains_and_the_next_server_continues() {
    assert_drains_after("INT");
}

#[test]
fn stop_returns_unsent_batches_to_the_queue() {
    let harness = BatchHarness::scabbard(6);
    harness.ledger.freeze();
    let server =
        harness.serve_with(&[("--submit-concurrency", "2"), ("--testing-drain-limit", "200ms")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let store = harness.store();
    wait_until("some batches are submitting", || {
        count_in_state(&store, BatchState::Submitting) >= 2
    });
    let output = server.stop_with("TERM");
    assert_eq!(output.exit_code, Some(0), "{output:?}");

    // A batch that was taken and not sent is delayed; one that was never taken is new.
    let [new, delayed, in_doubt] =
        count_in_states(&harness, [BatchState::New, BatchState::Delayed, BatchState::InDoubt]);
    assert!(in_doubt <= 2, "{in_doubt} batches are in doubt, but at most 2 were sent");
    assert_eq!(new + delayed + in_doubt, batches.len());

    harness.ledger.thaw();
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn second_signal_ends_at_once_and_duplicates_nothing() {
    let harness = BatchHarness::scabbard(3);
    harness.ledger.inject(Fault::LateAnswer(Duration::from_secs(15)), When::Always);
    let server = harness.serve_with(LONG_LEDGER_TIMEOUTS);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    // One that was not received would be in doubt until nothing can arrive any more.
    wait_until("the ledger has received the first batch of each service", || {
        let received = batches.iter().filter(|it| harness.ledger.times_received(&it.batch_id) == 1);
        received.count() == harness.services.len()
    });
    server.process.signal("TERM");
    server.process.wait_for_log("send the signal again to exit at once");
    let output = server.stop_with("TERM");
    assert_eq!(output.exit_code, Some(143), "{output:?}");
    assert_eq!(count_all(&harness.store()), batches.len());

    harness.ledger.heal();
    let server = harness.serve();
    server.process.wait_for_log("in doubt");
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// Scabbard cannot always prove what happened to a batch that was being sent; the operator decides.
#[test]
fn batches_are_applied_once_after_kills_on_scabbard() {
    let harness = BatchHarness::scabbard(5);
    harness.ledger.inject(Fault::Busy, When::Sometimes(0.1));
    let batches = signed_batches(&harness.services, 12);
    let store = harness.store();
    let mut submitted = 0;
    for part in [30, 60] {
        let server = harness.serve();
        server.submit(&batches[submitted..part]);
        submitted = part;
        wait_until("most of the part is applied", || {
            harness.decide_held_batches(&store);
            harness.ledger.record().len() >= part - 20
        });
        server.process.kill();
        assert_eq!(count_all(&harness.store()), part);
    }
    let server = harness.serve();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// A database on a shared server that can refuse connections.
struct InterruptibleDatabase {
    connection: PgConnection,
    name: String,
}

impl InterruptibleDatabase {
    /// Creates the database and returns it with its URL.
    fn create_on(server: &PostgresServer) -> (Self, String) {
        let url = server.url();
        let name = format!("interruptible_{}", std::process::id());
        let separator = if url.contains('?') { '&' } else { '?' };
        let database_url = format!("{url}{separator}dbname={name}");
        let connection = PgConnection::establish(url).unwrap();
        let mut database = Self { connection, name };
        database.execute("create database $");
        (database, database_url)
    }

    fn refuse_connections(&mut self) {
        self.execute("alter database $ allow_connections false");
        self.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '$'");
    }

    fn accept_connections(&mut self) {
        self.execute("alter database $ allow_connections true");
    }

    /// Executes a statement in which `$` stands for the database's name.
    fn execute(&mut self, sql: &str) {
        self.connection.batch_execute(&sql.replace('$', &self.name)).unwrap();
    }
}

impl Drop for InterruptibleDatabase {
    fn drop(&mut self) {
        self.execute("drop database $ with (force)");
    }
}

#[test]
fn server_recovers_after_a_database_outage() {
    let postgres = PostgresServer::from_env_or_start();
    let (mut database, url) = InterruptibleDatabase::create_on(&postgres);
    let harness = BatchHarness::scabbard(4).with_database(&url);
    let server = harness.serve_with(&[("--testing-lock-timeout", "1s")]);
    let batches = signed_batches(&harness.services, 20);
    let (before, after) = batches.split_at(40);
    server.submit(before);
    wait_until("some batches are applied", || harness.ledger.record().len() >= 10);

    database.refuse_connections();
    let rejected = server.post(&after[..1]).unwrap();
    assert_eq!((rejected.status, &rejected.json()["error"]["code"]), (503, &1012.into()));
    database.accept_connections();

    server.submit(after);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn server_recovers_after_a_ledger_outage() {
    let mut harness = BatchHarness::scabbard(5);
    let record = harness.path().join("record.jsonl");
    let start_ledger = |harness: &BatchHarness, port| {
        let services = harness.services.iter().map(|service| service.parse().unwrap());
        LedgerSim::scabbard(services).record_to(&record).port(port).start().unwrap()
    };
    harness.ledger = start_ledger(&harness, 0);
    let port = harness.ledger.address().port();
    let server = harness.serve();
    let (first_services, last_services) = harness.services.split_at(4);
    let (before, after) = (signed_batches(first_services, 10), signed_batches(last_services, 10));
    server.submit(&before);
    wait_until("some batches are applied", || harness.ledger.record().len() >= 10);

    harness.ledger = LedgerSim::sawtooth().start().unwrap();
    server.submit(&after);
    let store = harness.store();
    wait_until("a batch is delayed", || count_in_state(&store, BatchState::Delayed) > 0);

    harness.ledger = start_ledger(&harness, port);
    harness.wait_until_all_committed(&[before, after].concat());
    server.stop();
}

fn count_in_states<const N: usize>(harness: &BatchHarness, states: [BatchState; N]) -> [usize; N] {
    let store = harness.store();
    states.map(|state| count_in_state(&store, state))
}
