use std::{
    thread,
    time::{Duration, Instant},
};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection,
    connection::SimpleConnection, sql_query,
};
use grid_batch_core::BatchError;
use grid_batch_core::batches::{BatchConflict, IntakeStore};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::polling::PendingBatchStore;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_store::{Store, StoreError, StoreOptions};

use crate::fixture::{Database, StoreExt, TestStore, batch, id, service, wait_until_blocked};

/// A store with a short lock timeout.
fn open_with_short_timeout(db: &Database) -> TestStore {
    let options = StoreOptions { lock_timeout: Duration::from_secs(1), ..db.options() };
    db.open_with(options)
}

#[test]
fn locked_file_is_an_error_until_it_is_unlocked() {
    let db = Database::sqlite();
    let store = open_with_short_timeout(&db);
    let mut other = SqliteConnection::establish(db.file().to_str().unwrap()).unwrap();
    other.batch_execute("begin immediate").unwrap();
    let error = store.add(&[&[batch("a::b", 1)]]).unwrap_err();
    assert!(matches!(&error, BatchError::Unavailable(text) if text.contains("locked")), "{error}");
    assert!(store.find(&id(1)).unwrap().is_empty());
    other.batch_execute("rollback").unwrap();
    store.add_all(&[batch("a::b", 1)]);
}

#[test]
fn locked_service_is_an_error_until_it_is_unlocked() {
    let db = Database::postgres();
    let store = open_with_short_timeout(&db);
    store.add_all(&[batch("a::b", 1)]);
    store.worker().take(1).unwrap();
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    other.batch_execute("begin; select * from services for update").unwrap();
    let outcomes = store.add(&[&[batch("c::d", 2), batch("a::b", 3)]]).unwrap();
    assert!(matches!(outcomes[..], [Err(BatchConflict::ServiceLocked { .. })]), "{outcomes:?}");
    assert!(store.find(&id(2)).unwrap().is_empty());
    // Work that does not need the lock continues.
    assert_eq!(store.take_one("a::b").batch_id, id(1));
    other.batch_execute("rollback").unwrap();
    store.add_all(&[batch("a::b", 3)]);
}

#[test]
fn read_only_database_is_an_error() {
    let db = Database::postgres();
    drop(db.open());
    let read_only = "options=-cdefault_transaction_read_only%3Don%20";
    let url = db.postgres_url().replacen("options=", read_only, 1).parse().unwrap();
    let error = Store::open(&url, db.options()).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn broken_idle_connection_is_replaced() {
    let db = Database::postgres();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    cut_connections(&db);
    // A session of the server ends a moment before its connection.
    let started = Instant::now();
    while store.add(&[&[batch("a::b", 2)]]).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30), "the connection is not replaced");
    }
    assert_eq!(store.depth(&service("a::b")).unwrap(), 2);
}

#[test]
fn connection_lost_during_add_stores_nothing() {
    let db = Database::postgres();
    let store = db.open();
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before insert on batch_payloads for each row
             execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    thread::scope(|scope| {
        let adder = scope.spawn(|| store.add(&[&[batch("a::b", 1)]]).unwrap_err());
        wait_until_blocked(&mut watcher, "insert_payloads");
        cut_other_connections(&mut watcher);
        let error = adder.join().unwrap();
        assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
    });
    watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
    assert!(store.find(&id(1)).unwrap().is_empty());
    assert_eq!(store.depth(&service("a::b")).unwrap(), 0);
    store.add_all(&[batch("a::b", 1)]);
    assert_eq!(store.commit_next("a::b"), id(1));
}

#[test]
fn missing_table_is_reported_through_polling_traits() {
    let db = Database::sqlite();
    let store = db.open().monitor();
    db.execute("drop view batch_statuses; drop table lanes").unwrap();
    let error = store.get_pending_batch_ids(1).unwrap_err();
    assert!(matches!(error, BatchError::InternalError(_)));
    assert!(error.to_string().contains("lanes"), "{error}");
}

#[test]
fn corrupt_rows_are_reported() {
    let db = Database::sqlite();
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    db.execute("update lanes set attempts = -1").unwrap();
    let error = store.find(&id(1)).unwrap_err();
    assert!(matches!(error, BatchError::InternalError(_)));
    assert!(error.to_string().contains("-1 attempts"), "{error}");
}

/// Terminates all connections of this test to the database, except its own.
fn cut_connections(db: &Database) {
    cut_other_connections(&mut PgConnection::establish(&db.postgres_url()).unwrap());
}

fn cut_other_connections(own: &mut PgConnection) {
    #[derive(QueryableByName)]
    struct Cut {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        count: i64,
    }
    let cut = "select count(pg_terminate_backend(pid)) as count from pg_stat_activity
               where application_name = current_setting('application_name')
                   and pid <> pg_backend_pid()";
    let left = "select count(*) as count from pg_stat_activity
                where application_name = current_setting('application_name')
                    and pid <> pg_backend_pid()";
    assert!(sql_query(cut).get_result::<Cut>(own).unwrap().count > 0);
    let started = Instant::now();
    while sql_query(left).get_result::<Cut>(own).unwrap().count > 0 {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "a terminated connection is still open"
        );
        thread::yield_now();
    }
}
