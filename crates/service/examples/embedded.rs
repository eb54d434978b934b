//! The whole server inside a program: configured in code, started, used and stopped. The program stores a batch together
//! with a row of its own, in one transaction.
//!
//! The ledger is simulated and the database is a temporary SQLite file. Run it with
//! `cargo run -p grid-batch-service --example embedded`.

use std::{error::Error, thread, time::Duration};

use diesel::{Connection, RunQueryDsl, SqliteConnection, connection::SimpleConnection, sql_query};
use grid_batch_core::batches::{BatchState, NewBatch};
use grid_batch_core::{GlobalScopeId, ScopeId};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder};
use grid_batch_service::{Config, RunningServer, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let ledger = LedgerSim::sawtooth()
        .pending_for(Duration::from_millis(5))
        .valid_for(Duration::from_millis(5))
        .start()?;
    let file = directory.path().join("batches.db").display().to_string();
    let server = Server::start(&config(&ledger.url(), &format!("sqlite://{file}"))?)?;
    println!("The server is at {}", server.url());

    let service = GlobalScopeId.service_id();
    let batches = server.format().read(service, &signed_list("1"))?;
    server.submit(&batches)??;
    wait_for_commit(&server, &batches)?;

    let batches = server.format().read(service, &signed_list("2"))?;
    place_order(&server, &file, &batches)?;
    wait_for_commit(&server, &batches)?;

    let counts = server.counts();
    println!("{} submitted, {} committed", counts.submitted, counts.committed);
    server.stop()?;
    Ok(())
}

/// Inserts a row of the program and stores batches in one transaction, then has the batches submitted.
fn place_order(
    server: &RunningServer,
    file: &str,
    batches: &[NewBatch],
) -> Result<(), Box<dyn Error>> {
    let mut connection = SqliteConnection::establish(file)?;
    connection.batch_execute(
        "pragma busy_timeout = 5000; create table orders (id integer primary key, item text)",
    )?;
    connection.immediate_transaction(|connection| {
        sql_query("insert into orders (item) values ('a fish')").execute(connection)?;
        server.store().add_in_transaction(connection, batches)??;
        Ok::<_, Box<dyn Error>>(())
    })?;
    let services: Vec<_> = batches.iter().map(|batch| batch.service_id.clone()).collect();
    server.stored(&services);
    Ok(())
}

fn wait_for_commit(server: &RunningServer, batches: &[NewBatch]) -> Result<(), Box<dyn Error>> {
    for NewBatch { batch_id, .. } in batches {
        while server.status(batch_id)?[0].progress.state != BatchState::Committed {
            thread::sleep(Duration::from_millis(10));
        }
        println!("{batch_id} is committed");
    }
    Ok(())
}

/// The settings as flags would give them. A file and the environment could be added.
fn config(ledger: &str, database: &str) -> Result<Config, Box<dyn Error>> {
    let settings = [
        ("ledger.kind", "sawtooth"),
        ("ledger.urls", ledger),
        ("database", database),
        ("listen", "127.0.0.1:0"),
    ];
    let flag = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Ok(Config::from_flags(settings.into_iter().map(flag).collect())?)
}

fn signed_list(nonce: &str) -> Vec<u8> {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .nonce(nonce)
        .payload(b"inc a 1")
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    BatchList { batches: vec![batch] }.encode_to_vec()
}
