//! Rows that a transaction of another program keeps locked. SQLite locks no rows.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::{
    BatchConflict, BatchState, Change, Event, LedgerStatus, Outcome, ServiceId, TakenBatch,
};
use grid_batch_store::{ClaimOptions, ClaimStore, StoreError, StoreOptions};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, service};

const SERVICES: u64 = 9;
const LOCKED: &str = "a::4";

fn name(number: u64) -> String {
    format!("a::{number}")
}

/// Takes a batch of each service.
fn take_all(store: &TestStore) -> Vec<TakenBatch> {
    (0..SERVICES).for_each(|number| store.add_all(&[batch(&name(number), number)]));
    let names: Vec<String> = (0..SERVICES).map(name).collect();
    store.take(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn changes(taken: &[TakenBatch], event: impl Fn(&TakenBatch) -> Event) -> Vec<Change> {
    taken.iter().map(|taken| happened(taken, event(taken))).collect()
}

fn accepted(taken: &TakenBatch) -> Event {
    Event::Outcome { attempt: taken.attempt, outcome: Outcome::Accepted }
}

fn committed(_: &TakenBatch) -> Event {
    Event::status(LedgerStatus::Committed)
}

/// Locks the rows of one service in this table until the connection is dropped.
fn lock(db: &Database, table: &str) -> PgConnection {
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    let lock = format!("begin; select from {table} where service_id = '{LOCKED}' for update");
    other.batch_execute(&lock).unwrap();
    other
}

fn locked_services(store: &TestStore) -> Vec<ServiceId> {
    store.locked_services().into_iter().map(|locked| locked.service_id).collect()
}

#[track_caller]
fn expect_only_one_locked(store: &TestStore, changes: &[Change]) {
    let error = store.record(changes).unwrap_err();
    let StoreError::ServicesLocked { services } = error else { panic!("{error}") };
    assert_eq!(services, [service(LOCKED)]);
    assert_eq!(locked_services(store), [service(LOCKED)]);
}

fn states(store: &TestStore) -> BTreeSet<(String, BatchState)> {
    let state = |number| (name(number), store.one(&name(number), number).progress.state);
    (0..SERVICES).map(state).collect()
}

#[test]
fn group_is_recorded_without_the_locked_service() {
    for table in ["services", "lanes"] {
        let db = Database::postgres();
        let store = db.open();
        let taken = take_all(&store);
        let other = lock(&db, table);
        let both = [changes(&taken, accepted), changes(&taken, committed)].concat();
        expect_only_one_locked(&store, &both);
        expect_one_left_behind(&store, BatchState::Submitting);
        drop(other);
        record_the_rest(&store, &both);
    }
}

/// A batch ends in its own row, which no look at its service and lane shows.
#[test]
fn locked_row_of_a_batch_is_found() {
    let db = Database::postgres();
    let store = db.open();
    let taken = take_all(&store);
    let other = lock(&db, "batches");
    store.record(&changes(&taken, accepted)).unwrap();
    let committed = changes(&taken, committed);
    expect_only_one_locked(&store, &committed);
    expect_one_left_behind(&store, BatchState::Pending);
    expect_only_one_locked(&store, &committed);
    drop(other);
    record_the_rest(&store, &committed);
}

#[track_caller]
fn expect_one_left_behind(store: &TestStore, state: BatchState) {
    let mut others = states(store);
    assert!(others.remove(&(LOCKED.to_owned(), state)), "{others:?}");
    let all_committed = others.iter().all(|(_, state)| *state == BatchState::Committed);
    assert!(all_committed, "{others:?}");
}

/// Records the changes of the service that was locked.
#[track_caller]
fn record_the_rest(store: &TestStore, changes: &[Change]) {
    let is_late = |change: &&Change| change.service_id == service(LOCKED);
    let late: Vec<Change> = changes.iter().filter(is_late).cloned().collect();
    store.record(&late).unwrap();
    assert_eq!(locked_services(store), []);
    assert!(states(store).iter().all(|(_, state)| *state == BatchState::Committed));
}

#[test]
fn known_lock_is_not_waited_for_again() {
    let db = Database::postgres();
    let store = db.open();
    let taken = take_all(&store);
    let _other = lock(&db, "services");
    let accepted = changes(&taken, accepted);
    let time = |changes: &[Change]| {
        let started = Instant::now();
        expect_only_one_locked(&store, changes);
        started.elapsed()
    };
    let first = time(&accepted);
    let later = (0..5).map(|_| time(&accepted)).min().unwrap();
    assert!(later * 4 < first, "{later:?} is not much less than {first:?}");
}

#[test]
fn lists_of_a_locked_service_are_refused_alone() {
    let db = Database::postgres();
    let store = db.open();
    take_all(&store);
    let other = lock(&db, "services");
    let new: Vec<_> = (0..SERVICES).map(|number| [batch(&name(number), 50 + number)]).collect();
    let lists: Vec<_> = new.iter().map(|list| &list[..]).collect();
    let refused: Vec<_> = store.add(&lists).unwrap().into_iter().filter_map(Result::err).collect();
    assert_eq!(refused, [BatchConflict::ServiceLocked { service_id: service(LOCKED) }]);
    let depths = store.depths(None, 99).unwrap();
    let new_batches = depths.iter().filter(|depth| depth.open == 2).count();
    assert_eq!(new_batches as u64, SERVICES - 1);
    drop(other);
    assert!(store.add(&lists).unwrap().iter().all(Result::is_ok));
}

/// A lock that nothing meets any more does not stay on the list.
#[test]
fn renewal_finds_services_that_are_free_again() {
    let db = Database::postgres();
    let store = db.open();
    let taken = take_all(&store);
    let other = lock(&db, "lanes");
    expect_only_one_locked(&store, &changes(&taken, accepted));
    store.worker().renew().unwrap();
    assert_eq!(locked_services(&store), [service(LOCKED)]);
    drop(other);
    store.worker().renew().unwrap();
    assert_eq!(locked_services(&store), []);
}

#[test]
fn takeover_leaves_services_with_a_locked_lane() {
    let db = Database::postgres();
    let store = db.open();
    (0..SERVICES).for_each(|number| store.add_all(&[batch(&name(number), number)]));
    for table in ["lanes", "services", "service_id_claims"] {
        let other = lock(&db, table);
        let instance =
            ClaimStore::register(store.clone().into_store(), ClaimOptions::default()).unwrap();
        assert_eq!(instance.take(100).unwrap().claims.len() as u64, SERVICES - 1, "{table}");
        drop(other);
        assert_eq!(instance.take(100).unwrap().claims.len(), 1, "{table}");
        instance.release().unwrap();
    }
}

/// Locks of a process that is frozen in a transaction end when the server ends its session.
#[test]
fn sessions_end_when_idle_in_a_transaction() {
    let db = Database::postgres();
    drop(db.open());
    db.execute(
        "create table seen (idle_limit text);
         create function see() returns trigger language plpgsql as
             'begin
                  insert into seen values (current_setting(''idle_in_transaction_session_timeout''));
                  return new;
              end';
         create trigger see after insert on services for each row execute function see();",
    )
    .unwrap();
    let idle_transaction_timeout = Duration::from_millis(12_345);
    let store = db.open_with(StoreOptions { idle_transaction_timeout, ..db.options() });
    store.add_all(&[batch("a::b", 1)]);
    let seen = "select count(*) as number from seen where idle_limit = '12345ms'";
    assert_eq!(db.number(seen), 1);
}
