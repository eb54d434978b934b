//! Batches that are stored in a transaction of a program, together with its own rows.

use std::time::{Duration, Instant};

use diesel::{
    Connection as _, PgConnection, SqliteConnection, connection::SimpleConnection as _,
    result::QueryResult,
};
use grid_batch_core::BatchResult;
use grid_batch_core::batches::{AddOutcome, BatchConflict, NewBatch};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::queue::RoundStore;
use grid_batch_store::{ClaimOptions, ClaimStore, ProgramConnection, Store};

use crate::fixture::{Database, StoreExt, batch, on_both, service};

on_both! {
    batch_is_stored_with_the_rows_of_the_program,
    rollback_of_the_program_leaves_nothing,
    nothing_is_taken_before_the_program_commits,
    conflict_leaves_the_transaction_usable,
    connection_without_a_transaction_is_refused,
}

const ORDERS: &str = "create table orders (id integer primary key)";
const ORDER: &str = "insert into orders (id) values (1)";
const COUNT: &str = "select count(*) as number from orders";

/// A connection of the program, which the store does not know.
enum Program {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

type Added = BatchResult<Result<Vec<AddOutcome>, BatchConflict>>;

impl Program {
    fn connect(db: &Database) -> Self {
        if db.is_postgres() {
            Self::Postgres(PgConnection::establish(&db.postgres_url()).unwrap())
        } else {
            let file = db.file().display().to_string();
            let mut connection = SqliteConnection::establish(&file).unwrap();
            connection.batch_execute("pragma busy_timeout = 10000").unwrap();
            Self::Sqlite(connection)
        }
    }

    fn run(&mut self, sql: &str) -> QueryResult<()> {
        match self {
            Self::Postgres(connection) => connection.batch_execute(sql),
            Self::Sqlite(connection) => connection.batch_execute(sql),
        }
    }

    /// Inserts an order and adds batches in one transaction, which is rolled back if `commits` is false.
    fn order(&mut self, commits: bool, mut add: impl FnMut(ProgramConnection<'_>)) {
        let end =
            |()| if commits { Ok(()) } else { Err(diesel::result::Error::RollbackTransaction) };
        let ended = match self {
            Self::Postgres(connection) => connection.transaction(|connection| {
                connection.batch_execute(ORDER)?;
                add(connection.into());
                end(())
            }),
            Self::Sqlite(connection) => connection.immediate_transaction(|connection| {
                connection.batch_execute(ORDER)?;
                add(connection.into());
                end(())
            }),
        };
        assert_eq!(ended.is_ok(), commits, "{ended:?}");
    }

    fn add_outside_of_a_transaction(&mut self, store: &Store, batches: &[NewBatch]) -> Added {
        match self {
            Self::Postgres(connection) => store.add_in_transaction(connection, batches),
            Self::Sqlite(connection) => store.add_in_transaction(connection, batches),
        }
    }
}

fn program(db: &Database) -> Program {
    db.execute("drop table if exists orders").unwrap();
    db.execute(ORDERS).unwrap();
    Program::connect(db)
}

fn batch_is_stored_with_the_rows_of_the_program(db: &Database) {
    let store = db.open();
    program(db).order(true, |connection| {
        let added = store.add_in_transaction(connection, &[batch("a::b", 1), batch("c::d", 2)]);
        assert_eq!(added.unwrap().unwrap(), [AddOutcome::Stored; 2]);
    });
    assert_eq!(store.one("a::b", 1).batch_id, batch("a::b", 1).batch_id);
    assert_eq!(db.number(COUNT), 1);
    assert_eq!(store.take(&["a::b", "c::d"]).len(), 2);
}

fn rollback_of_the_program_leaves_nothing(db: &Database) {
    let store = db.open();
    program(db).order(false, |connection| {
        store.add_in_transaction(connection, &[batch("a::b", 1)]).unwrap().unwrap();
    });
    assert_eq!(store.depth(&service("a::b")).unwrap(), 0);
    assert_eq!(db.number(COUNT), 0);
    store.add_all(&[batch("a::b", 1)]);
    assert_eq!(store.take(&["a::b"]).len(), 1);
}

fn nothing_is_taken_before_the_program_commits(db: &Database) {
    let store = db.open();
    let claims = ClaimStore::register(store.clone().into_store(), ClaimOptions::default()).unwrap();
    let mut exchange = claims.work_notifications();
    let mut stored = || match &mut exchange {
        Some(exchange) => exchange(&[], &[]).unwrap().stored,
        None => Vec::new(),
    };
    store.add_all(&[batch("a::b", 1)]);
    claims.take(10).unwrap();
    stored();
    program(db).order(true, |connection| {
        store
            .add_in_transaction(connection, &[batch("c::d", 2), batch("a::b", 2)])
            .unwrap()
            .unwrap();
        assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
        assert_eq!(stored(), []);
    });
    // The commit notifies the instance that owns the service. PostgreSQL delivers that a moment later.
    if db.is_postgres() {
        let started = Instant::now();
        let arrived = loop {
            let arrived = stored();
            if !arrived.is_empty() || started.elapsed() > Duration::from_secs(60) {
                break arrived;
            }
        };
        assert_eq!(arrived, [service("a::b")]);
    }
    claims.take(10).unwrap();
    let ready = claims.ready_services(None, 10).unwrap();
    assert_eq!(ready, [service("a::b"), service("c::d")]);
}

fn conflict_leaves_the_transaction_usable(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let other = NewBatch { serialized_batch: b"other".to_vec(), ..batch("a::b", 1) };
    program(db).order(true, |connection| {
        let added = store.add_in_transaction(connection, &[batch("a::b", 2), other.clone()]);
        assert!(added.unwrap().is_err());
    });
    assert_eq!(store.depth(&service("a::b")).unwrap(), 1);
    assert_eq!(db.number(COUNT), 1);
}

fn connection_without_a_transaction_is_refused(db: &Database) {
    let store = db.open();
    let mut program = program(db);
    program.run(ORDER).unwrap();
    let refused = program.add_outside_of_a_transaction(&store, &[batch("a::b", 1)]);
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("no transaction was begun"), "{message}");
    assert_eq!(store.depth(&service("a::b")).unwrap(), 0);
}
