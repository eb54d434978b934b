//! Rows that a transaction of another program keeps locked. SQLite does not lock rows.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::ServiceId;
use grid_batch_core::batches::{
    BatchConflict, BatchState, Change, Event, IntakeStore, LedgerStatus,
};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionOutcome, ActionRefusal, ActionSource, Operator, OperatorAction, OperatorStore,
    OperatorTarget, OperatorVerb,
};
use grid_batch_core::queue::TakenBatch;
use grid_batch_store::{ClaimOptions, ClaimStore, StoreError, StoreOptions};

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, service};

const SERVICES: u64 = 9;
const LOCKED: &str = "a::4";
/// Much less than the usual lock limit of a test, but much more than the lock limit of a group.
const SHORT: Duration = Duration::from_secs(8);

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

/// Another transaction. It is rolled back when it is dropped, because if a connection is only closed, the server frees
/// its locks some time later.
struct OtherTransaction(PgConnection);

impl Drop for OtherTransaction {
    fn drop(&mut self) {
        let _ = self.0.batch_execute("rollback");
    }
}

/// Locks the rows of one service in this table until the transaction is dropped.
fn lock(db: &Database, table: &str) -> OtherTransaction {
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    let lock = format!("begin; select from {table} where service_id = '{LOCKED}' for update");
    other.batch_execute(&lock).unwrap();
    OtherTransaction(other)
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

/// The end of a batch changes its own row, whose lock cannot be seen at its service and lane.
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

#[test]
fn delays_of_free_services_end() {
    for table in ["services", "lanes"] {
        let db = Database::postgres();
        let store = db.open();
        let taken = take_all(&store);
        let retry_at = Some(db.now().plus(Duration::from_secs(3_600)));
        let busy =
            |taken: &TakenBatch| Event::Outcome { attempt: taken.attempt, outcome: Outcome::Busy };
        let delayed = changes(&taken, busy).into_iter();
        let delayed: Vec<Change> = delayed.map(|change| Change { retry_at, ..change }).collect();
        store.record(&delayed).unwrap();

        let other = lock(&db, table);
        let started = Instant::now();
        let ended = store.end_delays(None).unwrap();
        assert!(started.elapsed() < SHORT, "{table}: {:?}", started.elapsed());
        assert_eq!(ended.locked, [service(LOCKED)], "{table}");
        assert_eq!(ended.batches.len() as u64, SERVICES - 1, "{table}");
        let one = store.end_delays(Some(&service(LOCKED))).unwrap();
        assert_eq!((one.batches, one.locked), (vec![], vec![service(LOCKED)]), "{table}");

        drop(other);
        let ended = store.end_delays(None).unwrap();
        assert_eq!(ended.batches, [(service(LOCKED), id(4))], "{table}");
        assert_eq!(ended.locked, [], "{table}");
    }
}

#[test]
fn orphans_of_free_services_are_recovered() {
    let db = Database::postgres();
    let store = db.open();
    take_all(&store);
    let orphans = store.worker().with_submitter().unwrap();
    let other = lock(&db, "lanes");
    let recovered = store.worker().recover(&orphans).unwrap();
    assert_eq!(recovered.len() as u64, SERVICES - 1);
    assert!(recovered.iter().all(|orphan| orphan.service_id != service(LOCKED)));
    drop(other);
    assert_eq!(store.worker().recover(&orphans).unwrap(), [], "it is still taken for locked");
    store.worker().renew().unwrap();
    let recovered = store.worker().recover(&orphans).unwrap();
    let services: Vec<_> = recovered.into_iter().map(|orphan| orphan.service_id).collect();
    assert_eq!(services, [service(LOCKED)]);
}

/// More orphans than one step has, the first of which is locked.
#[test]
fn later_steps_of_recovery_follow_a_locked_service() {
    let db = Database::postgres();
    let store = db.open();
    take_all(&store);
    let names: Vec<String> = (0..600).map(|number| format!("b::{number:03}")).collect();
    let all: Vec<_> = (100..).zip(&names).map(|(number, name)| batch(name, number)).collect();
    store.add_all(&all);
    store.take(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let _other = lock(&db, "services");
    let orphans = store.worker().with_submitter().unwrap();
    let recovered = store.worker().recover(&orphans).unwrap();
    assert_eq!((orphans.len(), recovered.len()), (609, 608));
}

/// The outcome is set aside while its service is locked, and recorded before recovery.
#[test]
fn outcome_set_aside_is_recorded_before_recovery() {
    let db = Database::postgres();
    let store = db.open();
    let taken = take_all(&store);
    let orphans = store.worker().with_submitter().unwrap();
    let other = lock(&db, "lanes");
    let accepted = changes(&taken, accepted);
    expect_only_one_locked(&store, &accepted);
    drop(other);
    assert_eq!(store.worker().recover(&orphans).unwrap(), []);
    store.record(&accepted).unwrap();
    assert!(states(&store).iter().all(|(_, state)| *state == BatchState::Pending));
}

/// A lock that no statement meets any more does not stay on the list.
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

#[test]
fn action_on_a_locked_service_is_refused_soon() {
    let db = Database::postgres();
    let store = db.open();
    (0..SERVICES).for_each(|number| store.add_all(&[batch(&name(number), number)]));
    let _lock = lock(&db, "services");
    let hold = |number: u64, dry_run| {
        store.act(&OperatorAction {
            verb: OperatorVerb::Hold,
            target: OperatorTarget::Batch {
                service_id: service(&name(number)),
                batch_id: id(number),
                attempt: None,
            },
            reason: None,
            operator: Operator {
                name: "alice".to_owned(),
                source: ActionSource::Http,
                instance: None,
            },
            dry_run,
        })
    };
    let started = Instant::now();
    for dry_run in [true, false] {
        assert_eq!(hold(4, dry_run).unwrap(), ActionOutcome::Refused(ActionRefusal::Locked));
    }
    assert!(matches!(hold(5, false).unwrap(), ActionOutcome::Done(_)));
    assert!(started.elapsed() < SHORT, "{:?}", started.elapsed());
}
