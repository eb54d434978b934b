//! The server inside of another program: it submits one batch to a simulated ledger.
//!
//! `cargo run -p grid-batch-service --example embedded`

use std::{
    error::Error,
    thread,
    time::{Duration, Instant},
};

use grid_batch_http::{HttpClient, HttpOptions};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{BatchBuilder, BatchList, Message, SigningKey, TransactionBuilder};
use grid_batch_service::{Config, RunningServer, Server, Setting};

fn main() -> Result<(), Box<dyn Error>> {
    let ledger = LedgerSim::sawtooth().start()?;
    let directory = tempfile::tempdir()?;
    let database = format!("sqlite://{}", directory.path().join("batches.db").display());
    let server = Server::start(&config(&[
        ("database", &database),
        ("listen", "127.0.0.1:0"),
        ("ledger.kind", "sawtooth"),
        ("ledger.urls", &ledger.url()),
    ])?)?;
    println!("POST batches to {}/batches", server.url());

    post_batch(&server.url())?;
    wait_until_committed(&server)?;
    println!("the ledger has committed {} batch", server.counts().committed);

    server.stop()?;
    Ok(())
}

/// Settings that are not given have their defaults. [`Config::load`] reads a file and the
/// environment too.
fn config(settings: &[(&str, &str)]) -> Result<Config, Box<dyn Error>> {
    let mut flags = Vec::new();
    for (name, value) in settings {
        let setting = Setting::named(name).ok_or_else(|| format!("there is no setting {name}"))?;
        flags.push((setting, (*value).to_owned()));
    }
    Ok(Config::from_flags(flags)?)
}

fn post_batch(url: &str) -> Result<(), Box<dyn Error>> {
    let key = SigningKey::from_seed(1);
    let transaction = TransactionBuilder::new("example", "1.0")
        .inputs(["ab"])
        .outputs(["ab"])
        .payload("set a to b")
        .sign(&key, &key.public_key());
    let batch = BatchBuilder::new().transaction(transaction).sign(&key);
    let body = BatchList { batches: vec![batch] }.encode_to_vec();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let http = HttpClient::new(&HttpOptions::default())?;
    let headers = [("content-type", "application/octet-stream")];
    let response = runtime.block_on(http.post(&format!("{url}/batches"), &headers, body))?;
    match response.status {
        202 => Ok(()),
        status => Err(format!("HTTP status {status}: {}", response.text()).into()),
    }
}

fn wait_until_committed(server: &RunningServer) -> Result<(), Box<dyn Error>> {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let started = Instant::now();
    while server.counts().committed == 0 {
        if started.elapsed() > TIMEOUT {
            return Err("the batch was not committed in time".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
