//! The whole server inside a program: configured in code, started, used without HTTP and stopped. The program stores a
//! batch together with a row of its own, in one transaction.
//!
//! The ledger is simulated and the database is a temporary SQLite file.

use std::{error::Error, path::Path, thread, time::Duration};

use diesel::{connection::SimpleConnection, prelude::*};
use grid_batch_core::batches::{BatchState, NewBatch, StoredBatch};
use grid_batch_core::events::{EventKind, EventPosition};
use grid_batch_core::{GlobalScopeId, ScopeId};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder};
use grid_batch_service::{Config, RunningServer, Server};

diesel::table! {
    orders (id) {
        id -> Integer,
        quantity -> Integer,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let ledger = LedgerSim::sawtooth()
        .pending_for(Duration::from_millis(5))
        .valid_for(Duration::from_millis(5))
        .start()?;
    let file = directory.path().join("batches.db");
    let server = Server::start(&config(&ledger.url(), &file)?)?;
    println!("the server is at {}", server.url());

    let submitted = batches(&server, "1")?;
    server.submit(&submitted)??;
    wait_for_commit(&server, &submitted)?;

    let mut connection = connect(&file)?;
    let abandoned = batches(&server, "2")?;
    assert!(place_order(&server, &mut connection, &abandoned, 0).is_err());
    let ordered = batches(&server, "3")?;
    place_order(&server, &mut connection, &ordered, 5)?;
    let services: Vec<_> = ordered.iter().map(|batch| batch.service_id.clone()).collect();
    server.stored(&services);
    wait_for_commit(&server, &ordered)?;

    let quantities: Vec<i32> = orders::table.select(orders::quantity).load(&mut connection)?;
    let accepted = accepted(&server)?;
    println!("{accepted} batches were stored, and orders of {quantities:?}");
    assert_eq!((accepted, quantities), (2, vec![5]));
    assert!(server.status(&abandoned[0].batch_id)?.is_empty(), "the rollback left no batch");
    server.stop()?;
    Ok(())
}

/// Stores batches and inserts a row of the program in one transaction. The table refuses a quantity of 0, and nothing is
/// stored then.
fn place_order(
    server: &RunningServer,
    connection: &mut SqliteConnection,
    batches: &[NewBatch],
    quantity: i32,
) -> Result<(), Box<dyn Error>> {
    connection.immediate_transaction::<_, Box<dyn Error>, _>(|connection| {
        server.store().add_in_transaction(&mut *connection, batches)??;
        let order = orders::quantity.eq(quantity);
        diesel::insert_into(orders::table).values(order).execute(connection)?;
        Ok(())
    })
}

/// A connection of the program, with its own table in the file of the server.
fn connect(file: &Path) -> Result<SqliteConnection, Box<dyn Error>> {
    let mut connection = SqliteConnection::establish(&file.display().to_string())?;
    connection.batch_execute(
        "pragma busy_timeout = 5000;
         create table orders (id integer primary key, quantity integer check (quantity > 0))",
    )?;
    Ok(connection)
}

fn wait_for_commit(server: &RunningServer, batches: &[NewBatch]) -> Result<(), Box<dyn Error>> {
    for NewBatch { batch_id, .. } in batches {
        let is_committed = |it: &StoredBatch| it.progress.state == BatchState::Committed;
        while !server.status(batch_id)?.iter().any(is_committed) {
            thread::sleep(Duration::from_millis(10));
        }
        println!("{batch_id:.8} is committed");
    }
    Ok(())
}

/// The number of batches that were stored, from the events of the server.
fn accepted(server: &RunningServer) -> Result<usize, Box<dyn Error>> {
    let page = server.events(&EventPosition::Oldest, 100)??;
    let kinds = page.events.iter().map(|it| it.event.kind);
    Ok(kinds.filter(|kind| *kind == EventKind::Accepted).count())
}

/// The settings as flags would give them. A file and the environment could be added.
fn config(ledger: &str, database: &Path) -> Result<Config, Box<dyn Error>> {
    let database = format!("sqlite://{}", database.display());
    let settings = [
        ("ledger.kind", "sawtooth"),
        ("ledger.urls", ledger),
        ("database", &database),
        ("listen", "127.0.0.1:0"),
    ];
    let flag = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Ok(Config::from_flags(settings.into_iter().map(flag).collect())?)
}

/// A signed list with one batch, as the server takes it.
fn batches(server: &RunningServer, nonce: &str) -> Result<Vec<NewBatch>, Box<dyn Error>> {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .nonce(nonce)
        .payload(b"inc a 1")
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    let list = BatchList { batches: vec![batch] }.encode_to_vec();
    Ok(server.format().read(GlobalScopeId.service_id(), &list)?)
}
