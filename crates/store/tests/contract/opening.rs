use std::{fs, path::Path, sync::Arc, thread};

use diesel::{Connection, SqliteConnection, connection::SimpleConnection};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{Clock, ManualClock, SystemClock, Timestamp};
use grid_batch_store::{
    ClaimOptions, ClaimStore, DatabaseClock, DatabaseUrl, Store, StoreError, StoreOptions,
};
use grid_batch_support::ErrorChain;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    reopened_store_has_its_batches,
    newer_schema_is_refused,
    concurrent_opens_migrate_once,
    failed_migration_changes_nothing,
    stored_times_ignore_jumps_of_this_machine,
    commands_open_no_database_that_no_server_used,
    commands_open_no_database_with_another_schema,
    store_that_reads_writes_nothing,
    tables_of_an_earlier_build_are_refused,
    what_others_add_to_the_tables_is_harmless,
}

type Open = fn(&DatabaseUrl, StoreOptions) -> Result<Store, StoreError>;
const FOR_COMMANDS: [Open; 2] = [Store::open_existing, Store::open_to_read];

fn commands_open_no_database_that_no_server_used(db: &Database) {
    db.execute("create table other (id integer)").unwrap();
    for open in FOR_COMMANDS {
        let error = open(&db.url(), db.options()).unwrap_err();
        assert!(matches!(error, StoreError::NoTables { .. }), "{error}");
        assert!(error.to_string().contains(&db.url().to_string()), "{error}");
    }
    // Nothing was created.
    db.execute("create table services (id integer)").unwrap();
}

fn commands_open_no_database_with_another_schema(db: &Database) {
    drop(db.open());
    db.execute("insert into grid_batch_migrations (version) values ('29991231000000')").unwrap();
    for open in FOR_COMMANDS {
        let error = open(&db.url(), db.options()).unwrap_err();
        assert!(matches!(error, StoreError::SchemaNewer { .. }), "{error}");
    }
    db.execute("delete from grid_batch_migrations where version > '20261122'").unwrap();
    for open in FOR_COMMANDS {
        let error = open(&db.url(), db.options()).unwrap_err();
        assert!(matches!(error, StoreError::SchemaOlder { .. }), "{error}");
        assert!(error.to_string().contains("start the server of this release"), "{error}");
    }
}

fn store_that_reads_writes_nothing(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    let reader = Store::open_to_read(&db.url(), db.options()).unwrap();
    assert_eq!(reader.depth(&service("a::b")).unwrap(), 1);
    let error = reader.hold_batch(&service("a::b"), &id(1), "look first").unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    let writer = Store::open_existing(&db.url(), db.options()).unwrap();
    writer.hold_batch(&service("a::b"), &id(1), "look first").unwrap();
}

#[test]
fn commands_do_not_create_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("typo.db");
    let url = format!("sqlite://{}", file.display()).parse().unwrap();
    for open in FOR_COMMANDS {
        let error = open(&url, StoreOptions::default()).unwrap_err();
        assert!(matches!(error, StoreError::NoDatabase { .. }), "{error}");
        assert!(error.to_string().contains("typo.db"), "{error}");
    }
    assert!(!file.exists());
}

fn reopened_store_has_its_batches(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    assert_eq!(db.open().take_one("a::b").batch_id, id(1));
}

fn newer_schema_is_refused(db: &Database) {
    drop(db.open());
    db.execute("insert into grid_batch_migrations (version) values ('29991231000000')").unwrap();
    let error = Store::open(&db.url(), db.options()).unwrap_err();
    assert!(matches!(error, StoreError::SchemaNewer { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("29991231000000") && message.contains(&newest_migration()),
        "{message}"
    );
}

/// The version of the newest migration, as the table of the migrations has it.
fn newest_migration() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let newest = names.max().unwrap().into_string().unwrap();
    newest.split('_').next().unwrap().replace('-', "")
}

fn concurrent_opens_migrate_once(db: &Database) {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| db.open().ready_services(None, 1).unwrap());
        }
    });
}

/// A command that only reads must not wait for a server that writes all the time.
#[test]
fn store_opens_while_another_connection_writes() {
    let db = Database::sqlite();
    db.open().add_all(&[batch("a::b", 1)]);
    let mut writer = SqliteConnection::establish(db.file().to_str().unwrap()).unwrap();
    writer.batch_execute("begin immediate").unwrap();
    assert_eq!(db.open().depth(&service("a::b")).unwrap(), 1);
}

fn failed_migration_changes_nothing(db: &Database) {
    db.execute("create table batches (id integer)").unwrap();
    let error = Store::open(&db.url(), db.options()).unwrap_err();
    let error = ErrorChain(&error).to_string();
    assert!(error.contains("batches"), "{error}");
    // None of our tables was created.
    db.execute("create table services (id integer)").unwrap();
}

/// The machine's clock is in 1970 and jumps; PostgreSQL's is right. SQLite only has the machine's.
fn stored_times_ignore_jumps_of_this_machine(db: &Database) {
    let machine = Arc::new(ManualClock::at(Timestamp::from_micros(1_000_000)));
    let clock = DatabaseClock::new(machine.clone());
    let store = Store::open(&db.url(), StoreOptions { clock, ..db.options() }).unwrap();
    let hours = |hours: i64| Timestamp::from_micros(hours * 3_600 * 1_000_000);
    let stored_at = |number| {
        store.add_all(&[batch("a::b", number)]);
        store.find(&id(number)).unwrap()[0].created_at
    };
    let before = if db.is_postgres() {
        Timestamp::from_micros(SystemClock.now().as_micros() - 60_000_000)
    } else {
        Timestamp::from_micros(1_000_000)
    };
    let range = before..before.plus(std::time::Duration::from_secs(600));
    assert!(range.contains(&stored_at(1)), "{:?}", stored_at(2));
    machine.set(hours(7));
    assert!(range.contains(&stored_at(3)), "{:?}", stored_at(4));

    // After a renewal, PostgreSQL's clock is still the same, and SQLite's follows the machine's.
    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    assert!(claims.renew().unwrap());
    let is_same = range.contains(&stored_at(5));
    assert_eq!(is_same, db.is_postgres());
    assert_eq!(claims.store().clock().skew().ahead_seconds() < -3_600.0, db.is_postgres());
}

/// Names sort bytewise, whatever the locale of the database.
#[test]
fn every_compared_text_column_collates_bytewise() {
    let db = Database::postgres();
    drop(db.open());
    db.execute(
        "do $$ declare missing text; begin
             select string_agg(table_name || '.' || column_name, ', ') into missing
             from information_schema.columns
             where table_schema = current_schema and data_type = 'text'
                 and collation_name is distinct from 'C'
                 and table_name not like '\\_\\_diesel%'
                 and column_name not in
                     ('last_error', 'error', 'error_message', 'held_reason', 'outcome');
             if missing is not null then raise exception 'not bytewise: %', missing; end if;
         end $$",
    )
    .unwrap();
}

#[test]
fn new_file_has_small_pages_and_an_old_one_keeps_its_own() {
    for (before, page_size) in [(None, 1_024), (Some("pragma page_size = 4096"), 4_096)] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("batches.db");
        if let Some(settings) = before {
            let mut connection = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
            let create = format!("{settings}; pragma journal_mode = wal");
            connection.batch_execute(&create).unwrap();
        }
        let url = format!("sqlite://{}", file.display()).parse().unwrap();
        let store = Store::open(&url, StoreOptions::default()).unwrap();
        store.add_all(&[batch("a::b", 1)]);
        // The header of the file.
        let header = std::fs::read(&file).unwrap();
        assert_eq!(u16::from_be_bytes([header[16], header[17]]), page_size);
    }
}

#[test]
fn file_that_is_not_a_database_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text.db");
    std::fs::write(&path, "no database ".repeat(1_000)).unwrap();
    let url = format!("sqlite://{}", path.display()).parse().unwrap();
    let error = Store::open(&url, Default::default()).unwrap_err();
    let error = ErrorChain(&error).to_string();
    assert!(error.contains("text.db") && error.contains("not a database"), "{error}");
}

#[test]
fn missing_directory_error_names_the_file() {
    let url = "sqlite:///nowhere/at/all/batches.db".parse().unwrap();
    let error = Store::open(&url, Default::default()).unwrap_err();
    assert!(matches!(error, StoreError::Connect { .. }));
    assert!(error.to_string().contains("/nowhere/at/all/batches.db"), "{error}");
}

#[test]
fn unreachable_server_error_has_no_secrets() {
    let url = "postgres://user:hidden@127.0.0.1:1/db".parse().unwrap();
    let error = Store::open(&url, Default::default()).unwrap_err();
    assert!(matches!(error, StoreError::Connect { .. }));
    let message = ErrorChain(&error).to_string();
    assert!(message.contains("127.0.0.1") && !message.contains("hidden"), "{message}");
}

/// The version is that of this release, as if the only migration had been changed in place.
fn tables_of_an_earlier_build_are_refused(db: &Database) {
    for (change, back, difference) in [
        (
            "alter table webhooks drop column missed_at",
            "alter table webhooks add column missed_at bigint",
            "no \"webhooks: column missed_at ",
        ),
        (
            "drop index batches_by_label",
            "create index batches_by_label on batches (label, seq) where label is not null",
            "no \"batches: index batches_by_label (label, seq) where\"",
        ),
        (
            "alter table lanes rename column since to began",
            "alter table lanes rename column began to since",
            "no \"lanes: column since ",
        ),
        (
            "create unique index one_label on batches (label)",
            "drop index one_label",
            "there is \"batches: unique index one_label (label)\"",
        ),
    ] {
        drop(db.open());
        db.execute(change).unwrap();
        let open: [Open; 3] = [Store::open, Store::open_existing, Store::open_to_read];
        for open in open {
            let error = open(&db.url(), db.options()).unwrap_err();
            assert!(matches!(error, StoreError::SchemaDiffers { .. }), "{change}: {error}");
            let message = error.to_string();
            assert!(message.contains(difference), "{change}: {message}");
            assert!(message.contains("with an empty database"), "{message}");
        }
        let version = Store::schema_version(&db.url(), &db.options()).unwrap();
        assert_eq!(version.found, Some(version.known.clone()));
        assert!(!version.is_current(), "{change}");
        // Types have other names on SQLite.
        let back =
            if db.is_postgres() { back.to_owned() } else { back.replace("bigint", "integer") };
        db.execute(&back).unwrap();
    }
    drop(db.open());
}

fn what_others_add_to_the_tables_is_harmless(db: &Database) {
    drop(db.open());
    db.execute(
        "create index index_of_an_operator on batches (checked_at);
         alter table batches add column of_an_operator text;
         create table of_an_operator (id integer primary key, text text not null)",
    )
    .unwrap();
    db.open().add_all(&[batch("a::b", 1)]);
}

/// A build that does not know withdrawals.
#[cfg(not(feature = "withdrawals"))]
mod of_another_build {
    use super::*;

    on_both! {
        database_with_withdrawals_is_only_read,
    }

    fn database_with_withdrawals_is_only_read(db: &Database) {
        db.open().add_all(&[batch("a::b", 1)]);
        db.execute("create table withdrawals (seq integer primary key)").unwrap();
        drop(db.open());
        db.execute("insert into withdrawals (seq) values (1)").unwrap();
        for open in [Store::open as Open, Store::open_existing] {
            let error = open(&db.url(), db.options()).unwrap_err();
            assert!(matches!(error, StoreError::HasWithdrawals), "{error}");
            assert!(error.to_string().contains("use a build with the feature"), "{error}");
        }
        let store = Store::open_to_read(&db.url(), db.options()).unwrap();
        assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    }
}
