//! The whole server inside a program: configured in code, started, used and stopped.
//!
//! The ledger is simulated and the database is a temporary SQLite file. Run it with
//! `cargo run -p grid-batch-service --example embedded`.

use std::{error::Error, thread, time::Duration};

use grid_batch_core::batches::{BatchState, IntakeStore};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{GlobalScopeId, ScopeId};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{
    BatchBuilder, BatchList, Limits, Message, SigningKey, TransactionBuilder, verify_list,
};
use grid_batch_service::{Config, RunningServer, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let ledger = LedgerSim::sawtooth()
        .pending_for(Duration::from_millis(5))
        .valid_for(Duration::from_millis(5))
        .start()?;
    let database = format!("sqlite://{}", directory.path().join("batches.db").display());
    let server = Server::start(&config(&ledger.url(), &database)?)?;
    println!("The server is at {}", server.url());

    submit_batch(&server)?;
    let counts = server.counts();
    println!("{} submitted, {} committed", counts.submitted, counts.committed);
    server.stop()?;
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

/// Adds one signed batch without HTTP, as a program with its own interface would, and waits for its
/// end.
fn submit_batch(server: &RunningServer) -> Result<(), Box<dyn Error>> {
    let service = GlobalScopeId.service_id().clone();
    for batch in verify_list(&signed_list(), &Limits::default())? {
        let batch = batch.into_new_batch(service.clone());
        let batch_id = batch.batch_id;
        IntakeStore::add(server.store(), &[&[batch]])?.remove(0)?;
        while server.store().find(&batch_id)?[0].progress.state != BatchState::Committed {
            thread::sleep(Duration::from_millis(10));
        }
        println!("{batch_id} is committed");
    }
    Ok(())
}

fn signed_list() -> Vec<u8> {
    let key = SigningKey::from_seed(7);
    let transaction = TransactionBuilder::new("intkey", "1.0")
        .inputs(["1cf126"])
        .outputs(["1cf126"])
        .nonce("1")
        .payload(b"inc a 1")
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    BatchList { batches: vec![batch] }.encode_to_vec()
}
