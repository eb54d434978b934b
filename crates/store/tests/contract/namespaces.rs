//! The store in the database of a program that has its own tables, some with the same names as the store's.

use diesel::{
    Connection as _, PgConnection, SqliteConnection,
    connection::SimpleConnection as _,
    r2d2::{ConnectionManager, Pool},
};
use diesel_migrations::MigrationHarness as _;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{
    ClaimOptions, ClaimStore, Migrations, Namespace, ProgramPool, SessionSettings, Store,
    StoreError, StoreOptions,
};

use crate::fixture::{Database, StoreExt, batch, happened, id, on_both, service};

on_both! {
    namespace_keeps_tables_of_a_program_apart,
    two_namespaces_of_a_database_are_two_stores,
    program_lends_its_pool,
    pool_without_the_settings_is_refused,
    program_runs_the_migrations,
    database_of_an_earlier_release_is_adopted,
    database_of_an_earlier_release_is_read,
    migrations_of_a_program_are_not_ours,
}

/// Tables of Grid, and a migration that Grid has recorded.
const TABLES_OF_GRID: &str = "
    create table batches (id text primary key, data text not null);
    create table transactions (id text primary key, payload text, family text);
    create table services (name text);
    create table instances (id integer, url text);
    insert into batches (id, data) values ('b1', 'of Grid');
    create table __diesel_schema_migrations (
        version varchar(50) primary key, run_on timestamp not null default current_timestamp);
    insert into __diesel_schema_migrations (version) values ('00000000000000'), ('29991231000000');";

fn apart(db: &Database) -> StoreOptions {
    let namespace = Namespace::new(&db.namespace_name()).unwrap();
    StoreOptions { namespace, ..db.options() }
}

/// The name of a table in the namespace.
fn table(db: &Database, name: &str) -> String {
    let separator = if db.is_postgres() { "." } else { "_" };
    format!("{}{separator}{name}", db.namespace_name())
}

fn pool_of_program(db: &Database, settings: Option<SessionSettings>) -> ProgramPool {
    if db.is_postgres() {
        let mut builder = Pool::builder().max_size(4);
        if let Some(settings) = settings {
            builder = builder.connection_customizer(Box::new(settings));
        }
        builder.build(ConnectionManager::<PgConnection>::new(db.postgres_url())).unwrap().into()
    } else {
        let mut builder = Pool::builder().max_size(4);
        if let Some(settings) = settings {
            builder = builder.connection_customizer(Box::new(settings));
        }
        let file = db.file().display().to_string();
        builder.build(ConnectionManager::<SqliteConnection>::new(file)).unwrap().into()
    }
}

/// Adds batches and processes them until their ends, holds one, and reads them.
fn use_store(store: &Store) {
    store.add_all(&[batch("a::b", 1), batch("a::b", 2), batch("c::d", 3)]);
    let claims = ClaimStore::register(store.clone(), ClaimOptions::default()).unwrap();
    claims.take(10).unwrap();
    let ready = claims.ready_services(None, 10).unwrap();
    assert_eq!(ready, [service("a::b"), service("c::d")]);
    let taken = claims.take_next(&ready).unwrap();
    assert_eq!(taken.len(), 2);
    for taken in &taken {
        store.outcome(taken, Outcome::Accepted);
        store.status(taken, LedgerStatus::Committed);
        let again = grid_batch_core::batches::Event::status(LedgerStatus::Committed);
        store.record_one(happened(taken, again));
    }
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    store.hold_batch(&service("a::b"), &id(2), "look first").unwrap();
    assert_eq!(store.held_batches(None, 9).unwrap().len(), 1);
    assert_eq!(store.find(&id(1)).unwrap().len(), 1);
    assert!(store.one("c::d", 3).ended_at.is_some());
    assert!(claims.renew().unwrap());
    claims.release().unwrap();
    assert_eq!(store.remove_in_steps(grid_batch_core::Timestamp::from_micros(i64::MAX), 9), 2);
}

fn expect_tables_of_grid(db: &Database) {
    assert_eq!(db.number("select count(*) as number from batches where data = 'of Grid'"), 1);
    assert_eq!(db.number("select count(*) as number from batches"), 1);
    for table in ["transactions", "services", "instances"] {
        assert_eq!(db.number(&format!("select count(*) as number from {table}")), 0, "{table}");
    }
    let versions = db.number("select count(*) as number from __diesel_schema_migrations");
    assert_eq!(versions, 2);
}

fn namespace_keeps_tables_of_a_program_apart(db: &Database) {
    db.execute(TABLES_OF_GRID).unwrap();
    use_store(&Store::open(&db.url(), apart(db)).unwrap());
    expect_tables_of_grid(db);
    let batches = table(db, "batches");
    assert_eq!(db.number(&format!("select count(*) as number from {batches}")), 1);

    // The store is opened again, and for commands.
    for store in [
        Store::open(&db.url(), apart(db)).unwrap(),
        Store::open_existing(&db.url(), apart(db)).unwrap(),
        Store::open_to_read(&db.url(), apart(db)).unwrap(),
    ] {
        assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    }
    let version = Store::schema_version(&db.url(), &apart(db)).unwrap();
    assert!(version.is_current(), "{version:?}");
}

fn two_namespaces_of_a_database_are_two_stores(db: &Database) {
    let other = Namespace::new(&db.namespace_name()).unwrap();
    let stores = [Namespace::default(), other].map(|namespace| {
        Store::open(&db.url(), StoreOptions { namespace, ..db.options() }).unwrap()
    });
    stores[0].add_all(&[batch("a::b", 1)]);
    assert_eq!(stores[0].depth(&service("a::b")).unwrap(), 1);
    assert_eq!(stores[1].depth(&service("a::b")).unwrap(), 0);
}

fn program_lends_its_pool(db: &Database) {
    db.execute(TABLES_OF_GRID).unwrap();
    drop(Store::open(&db.url(), apart(db)).unwrap());
    let pool = pool_of_program(db, Some(SessionSettings::new(&apart(db))));
    let store = Store::over(pool.clone(), apart(db)).unwrap();
    use_store(&store);
    expect_tables_of_grid(db);
    store.probe().check().unwrap();
    assert_eq!(store.connections().len(), 1);
    drop(store);
    // The pool is still the program's.
    match pool {
        ProgramPool::Postgres(pool) => {
            pool.get().unwrap().batch_execute("select data from batches")
        }
        ProgramPool::Sqlite(pool) => pool.get().unwrap().batch_execute("select data from batches"),
    }
    .unwrap();
}

fn pool_without_the_settings_is_refused(db: &Database) {
    drop(Store::open(&db.url(), apart(db)).unwrap());
    let error = Store::over(pool_of_program(db, None), apart(db)).unwrap_err();
    assert!(matches!(error, StoreError::SessionSettings { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("_timeout = 10000"), "{message}");
    assert!(message.contains("SessionSettings"), "{message}");
}

fn program_runs_the_migrations(db: &Database) {
    let migrations = Migrations::new(apart(db).namespace);
    let is_pending = if db.is_postgres() {
        let mut connection = PgConnection::establish(&db.postgres_url()).unwrap();
        connection.run_pending_migrations(migrations).unwrap();
        connection.has_pending_migration(Migrations::new(apart(db).namespace))
    } else {
        let file = db.file().display().to_string();
        let mut connection = SqliteConnection::establish(&file).unwrap();
        connection.run_pending_migrations(migrations).unwrap();
        connection.has_pending_migration(Migrations::new(apart(db).namespace))
    };
    assert!(!is_pending.unwrap());
    let pool = pool_of_program(db, Some(SessionSettings::new(&apart(db))));
    use_store(&Store::over(pool, apart(db)).unwrap());
}

/// Changes the database to one in which the previous release has recorded the migrations.
pub fn record_as_earlier_release(db: &Database) {
    db.execute(
        "create table __diesel_schema_migrations (
             version varchar(50) primary key, run_on timestamp not null default current_timestamp);
         insert into __diesel_schema_migrations (version)
         select version from grid_batch_migrations where version not like '%!_%' escape '!';
         insert into __diesel_schema_migrations (version) values ('29991231000000');
         drop table grid_batch_migrations;",
    )
    .unwrap();
}

fn database_of_an_earlier_release_is_adopted(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    // The earlier release has run the steps of all parts.
    let versions = "select count(*) as number from grid_batch_migrations
         where version not like '%!_%' escape '!'";
    let before = db.number(versions);
    record_as_earlier_release(db);
    for _ in 0..2 {
        assert_eq!(db.open().depth(&service("a::b")).unwrap(), 1);
        assert_eq!(db.number(versions), before);
    }
    let earlier = db.number("select count(*) as number from __diesel_schema_migrations");
    assert!(earlier > 1, "an instance of the earlier release can still start");
}

fn database_of_an_earlier_release_is_read(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    record_as_earlier_release(db);
    for open in [Store::open_existing, Store::open_to_read] {
        let store = open(&db.url(), db.options()).unwrap();
        assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    }
    assert!(Store::schema_version(&db.url(), &db.options()).unwrap().is_current());
    db.execute("create table grid_batch_migrations (id integer)").unwrap();
}

/// An earlier release reads its own record, and can thus refuse a schema that it does not know.
fn migrations_of_a_program_are_not_ours(db: &Database) {
    db.execute(
        "create table __diesel_schema_migrations (version varchar(50) primary key);
         insert into __diesel_schema_migrations (version) values ('29991231000000')",
    )
    .unwrap();
    let error = Store::open_existing(&db.url(), db.options()).unwrap_err();
    assert!(matches!(error, StoreError::NoTables { .. }), "{error}");
    db.open().add_all(&[batch("a::b", 1)]);
    assert_eq!(db.open().depth(&service("a::b")).unwrap(), 1);
}
