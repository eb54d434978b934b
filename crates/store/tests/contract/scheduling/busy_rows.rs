//! Rows that other transactions of this program repeatedly lock for a short time. SQLite does not lock rows.

use std::{thread, time::Duration};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{Event, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::StrategyKind;
use grid_batch_store::StoreError;

use super::fixture::{SERVICE, ScheduledExt, depending, numbers, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, happened, service, wait_until_blocked};

/// A connection that bypasses the store.
fn connect(db: &Database) -> PgConnection {
    PgConnection::establish(&db.postgres_url()).unwrap()
}

/// Runs `work` while another transaction has locked the service. The lock is released as soon as `work` waits in
/// `statement`.
fn while_busy<T: Send>(db: &Database, statement: &str, work: impl FnOnce() -> T + Send) -> T {
    let mut other = connect(db);
    other.batch_execute("begin; select * from services for update").unwrap();
    thread::scope(|scope| {
        let working = scope.spawn(work);
        wait_until_blocked(&mut connect(db), statement);
        other.batch_execute("commit").unwrap();
        working.join().unwrap()
    })
}

const OTHER: &str = "c::d";

/// Sets up a batch of another service that waits for the job.
fn leave_to_job(db: &Database) -> TestStore {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    store.add_all(&[depending(OTHER, 3, "aa", &[transaction_of(1)])]);
    store.commit(&store.take_up_to(1));
    assert!(store.dependents_wait());
    store
}

#[test]
fn job_waits_for_a_busy_service() {
    let db = Database::postgres();
    let store = leave_to_job(&db);
    let freed = while_busy(&db, "lock_services", || store.free_dependents(100).unwrap());
    assert_eq!(Vec::from_iter(freed.ready), [service(OTHER)]);
    assert_eq!(store.locked_services(), []);
}

#[test]
fn job_does_not_wait_for_busy_lanes() {
    let db = Database::postgres();
    let store = leave_to_job(&db);
    let mut round = connect(&db);
    round.batch_execute("begin; select * from lanes where busy for update").unwrap();
    let freed = store.free_dependents(100).unwrap();
    assert_eq!(Vec::from_iter(freed.ready), [service(OTHER)]);
}

#[test]
fn end_of_what_follows_waits_for_a_busy_service() {
    let db = Database::postgres();
    let store = db.open_halting(StrategyKind::Serial);
    store.add_all(&[1, 2, 3].map(|number| writing(number, "aa")));
    store.end(&store.take_up_to(9)[0], LedgerStatus::Invalid);
    db.execute("update halts set ends_until = 9000000000").unwrap();
    while_busy(&db, "lock_services", || store.free_dependents(100).unwrap());
    assert_eq!(store.depth(&service(SERVICE)).unwrap(), 0);
}

#[test]
fn pipeline_round_waits_for_a_busy_service() {
    let db = Database::postgres();
    let store = db.open_scheduled(StrategyKind::Pipeline, 9);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    store.worker_of_all();
    let taken = while_busy(&db, "lock_services", || store.take_up_to(9));
    assert_eq!(numbers(&taken), [1]);
}

/// Makes the service known as locked.
fn get_locked(db: &Database, store: &TestStore) {
    let taken = store.take_up_to(1);
    let mut other = connect(db);
    other.batch_execute("begin; select * from services for update").unwrap();
    let event = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
    let error = store.record(&[happened(&taken[0], event)]).unwrap_err();
    assert!(matches!(error, StoreError::ServicesLocked { .. }), "{error}");
    other.batch_execute("rollback").unwrap();
    assert_eq!(store.locked_services().len(), 1);
}

/// A service that was locked for long but is only busy now is found to be free, although it looks locked.
#[test]
fn known_lock_ends_while_the_service_is_busy() {
    let db = Database::postgres();
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    get_locked(&db, &store);
    db.clock.advance(Duration::from_secs(2));
    while_busy(&db, "lock_service_and_lanes", || store.add_all(&[writing(3, "cc")]));
    assert_eq!(store.locked_services(), []);
}
