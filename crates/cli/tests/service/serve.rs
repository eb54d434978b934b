//! The program that serves, stopped, killed and cut off in every way.

use std::time::Duration;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::BatchState;
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_test_postgres::{TestDatabase, TestServer};

use crate::{
    batches::batches,
    bench::{Bench, PATIENT, count, stored},
    until::until,
};

fn all_are_committed_in_order(bench: &Bench) {
    let serving = bench.serve();
    let all = batches(&bench.services, 10);
    serving.hand_in(&all);
    bench.until_all_committed(&all);
    serving.stop();
}

#[test]
fn what_is_handed_in_is_committed_in_order_on_sawtooth() {
    all_are_committed_in_order(&Bench::sawtooth());
}

#[test]
fn what_is_handed_in_is_committed_in_order_on_scabbard() {
    all_are_committed_in_order(&Bench::scabbard(5));
}

#[test]
fn what_is_handed_in_is_committed_in_order_on_postgres() {
    let database = TestDatabase::create();
    all_are_committed_in_order(&Bench::scabbard(5).stored_in(database.url()));
}

/// Stopped while it works: nothing is in doubt, and the next start goes on.
fn a_stop_drains(signal: &str) {
    let bench = Bench::scabbard_with(5, |ledger| {
        ledger.fault(Fault::LateAnswer(Duration::from_millis(100)), When::Always)
    });
    let serving = bench.serve();
    let all = batches(&bench.services, 10);
    serving.hand_in(&all);
    until("some are applied", || bench.ledger.record().len() >= 10);
    let ended = serving.stop_by(signal);
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let applied = bench.ledger.record().len();
    assert!(applied < all.len(), "it was not stopped in the middle");
    assert_eq!(stored(&bench.store()), all.len());
    assert_eq!(of_states(&bench, [BatchState::Submitting, BatchState::InDoubt]), [0, 0]);

    bench.ledger.heal();
    let serving = bench.serve();
    bench.until_all_committed(&all);
    serving.stop();
    all.iter().for_each(|made| assert_eq!(bench.ledger.times_received(&made.batch_id), 1));
}

#[test]
fn sigterm_drains_and_the_next_start_goes_on() {
    a_stop_drains("TERM");
}

#[test]
fn ctrl_c_drains_and_the_next_start_goes_on() {
    a_stop_drains("INT");
}

#[test]
fn a_stop_hands_back_what_was_not_sent() {
    let bench = Bench::scabbard(6);
    bench.ledger.freeze();
    let serving =
        bench.serve_with(&[("--submit-concurrency", "2"), ("--submit-drain-limit", "200ms")]);
    let all = batches(&bench.services, 2);
    serving.hand_in(&all);
    let store = bench.store();
    until("some are sent", || count(&store, BatchState::Submitting) >= 2);
    let ended = serving.stop_by("TERM");
    assert_eq!(ended.code, Some(0), "{ended:?}");

    // What was taken and not sent is delayed until now; what was never taken is new.
    let [new, delayed, in_doubt] =
        of_states(&bench, [BatchState::New, BatchState::Delayed, BatchState::InDoubt]);
    assert!(in_doubt <= 2, "{in_doubt} are in doubt, and only 2 can have been sent");
    assert_eq!(new + delayed + in_doubt, all.len());

    bench.ledger.thaw();
    let serving = bench.serve();
    bench.until_all_committed(&all);
    serving.stop();
}

#[test]
fn a_second_signal_ends_at_once_and_nothing_is_done_twice() {
    let bench = Bench::scabbard(3);
    bench.ledger.inject(Fault::LateAnswer(Duration::from_secs(15)), When::Always);
    let serving = bench.serve_with(PATIENT);
    let all = batches(&bench.services, 3);
    serving.hand_in(&all);
    until("the first is at the ledger", || bench.ledger.times_received(&all[0].batch_id) == 1);
    serving.program.signal("TERM");
    serving.program.until_it_logs("once more ends at once");
    let ended = serving.stop_by("TERM");
    assert_eq!(ended.code, Some(143), "{ended:?}");
    assert_eq!(stored(&bench.store()), all.len());

    bench.ledger.heal();
    let serving = bench.serve();
    serving.program.until_it_logs("in doubt");
    bench.until_all_committed(&all);
    serving.stop();
}

fn killed_under_load_again_and_again(bench: &Bench) {
    bench.ledger.inject(Fault::Busy, When::Sometimes(0.1));
    let all = batches(&bench.services, 60 / bench.services.len());
    let store = bench.store();
    let mut handed_in = 0;
    for part in [30, 60] {
        let serving = bench.serve();
        serving.hand_in(&all[handed_in..part]);
        handed_in = part;
        until("some of it is applied", || {
            bench.decide_what_is_held(&store);
            bench.ledger.record().len() >= part - 20
        });
        serving.program.kill();
        assert_eq!(stored(&bench.store()), part);
    }
    let serving = bench.serve();
    bench.until_all_committed(&all);
    serving.stop();
}

#[test]
fn killed_under_load_everything_ends_once_and_in_order_on_sawtooth() {
    killed_under_load_again_and_again(&Bench::sawtooth());
}

/// Where Scabbard cannot prove what became of a batch that was being sent, a person says so.
#[test]
fn killed_under_load_everything_ends_once_and_in_order_on_scabbard() {
    killed_under_load_again_and_again(&Bench::scabbard(5));
}

/// A database that can be taken away from whoever uses it.
struct Outage {
    server: PgConnection,
    name: String,
}

impl Outage {
    /// The database, and its URL.
    fn on(server: &TestServer) -> (Self, String) {
        let url = server.url();
        let name = format!("outage_{}", std::process::id());
        let separator = if url.contains('?') { '&' } else { '?' };
        let within = format!("{url}{separator}dbname={name}");
        let mut outage = Self { server: PgConnection::establish(url).unwrap(), name };
        outage.run("create database $");
        (outage, within)
    }

    fn begin(&mut self) {
        self.run("alter database $ allow_connections false");
        self.run("select pg_terminate_backend(pid) from pg_stat_activity where datname = '$'");
    }

    fn end(&mut self) {
        self.run("alter database $ allow_connections true");
    }

    /// Runs a statement about the database, which is called `$` in it.
    fn run(&mut self, sql: &str) {
        self.server.batch_execute(&sql.replace('$', &self.name)).unwrap();
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.run("drop database $ with (force)");
    }
}

#[test]
fn a_database_that_was_gone_for_a_while_is_used_again() {
    let server = TestServer::named_or_new();
    let (mut outage, url) = Outage::on(&server);
    let bench = Bench::scabbard(4).stored_in(&url);
    let serving = bench.serve_with(&[("--store-patience", "1s")]);
    let all = batches(&bench.services, 20);
    let (before, after) = all.split_at(40);
    serving.hand_in(before);
    until("some are applied", || bench.ledger.record().len() >= 10);

    outage.begin();
    let refused = serving.try_hand_in(&after[..1]).unwrap();
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &1012.into()));
    outage.end();

    serving.hand_in(after);
    bench.until_all_committed(&all);
    serving.stop();
}

#[test]
fn a_ledger_that_was_gone_for_a_while_is_used_again() {
    let mut bench = Bench::scabbard(5);
    let record = bench.path().join("record.jsonl");
    let ledger = |bench: &Bench, port| {
        let services = bench.services.iter().map(|service| service.parse().unwrap());
        LedgerSim::scabbard(services).record_to(&record).port(port).start().unwrap()
    };
    bench.ledger = ledger(&bench, 0);
    let port = bench.ledger.address().port();
    let serving = bench.serve();
    let (these, others) = bench.services.split_at(4);
    let (before, after) = (batches(these, 10), batches(others, 10));
    serving.hand_in(&before);
    until("some are applied", || bench.ledger.record().len() >= 10);

    bench.ledger = LedgerSim::sawtooth().start().unwrap();
    serving.hand_in(&after);
    let store = bench.store();
    until("what is sent is delayed", || count(&store, BatchState::Delayed) > 0);

    bench.ledger = ledger(&bench, port);
    bench.until_all_committed(&[before, after].concat());
    serving.stop();
}

fn of_states<const N: usize>(bench: &Bench, states: [BatchState; N]) -> [usize; N] {
    let store = bench.store();
    states.map(|state| count(&store, state))
}
