//! The whole server: HTTP clients, store, queue, submitter, ledger and poller.

use std::{
    collections::HashMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_http::{HttpClient, HttpOptions};
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_protocol::{BatchList, Message};
use grid_batch_service::{Config, RunningServer, Server, Setting};

use crate::batches::{batch, service};

/// The result of a measurement.
pub struct FullPathResult {
    /// Batches per second.
    pub per_second: f64,
    /// The median time, in ms, from a commit to the next POST of the service, by the ledger's record.
    pub gap_median: f64,
    /// The 99th percentile of that time.
    pub gap_99: f64,
}

const CLIENTS: usize = 32;

pub fn measure(database: &str, services: usize, batches: usize) -> FullPathResult {
    let scopes = (0..services).map(|number| service(number).parse().unwrap());
    let ledger = LedgerSim::scabbard(scopes).without_back_pressure().start().unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "7".repeat(64)).unwrap();
    let running = Server::start(&config(database, &ledger, key.path(), services)).unwrap();
    let bodies: Vec<(usize, Vec<u8>)> = (0..batches).map(|n| (n % services, body(n))).collect();

    let started = Instant::now();
    send_all(&running.url(), services, &Arc::new(bodies));
    wait_until_committed(&running, batches);
    let time = started.elapsed();
    running.stop().unwrap();

    let mut gaps = gaps(&ledger);
    gaps.sort_by(f64::total_cmp);
    let percentile = |part: f64| gaps[((gaps.len() - 1) as f64 * part) as usize];
    FullPathResult {
        per_second: batches as f64 / time.as_secs_f64(),
        gap_median: percentile(0.5),
        gap_99: percentile(0.99),
    }
}

fn config(database: &str, ledger: &LedgerSim, key: &std::path::Path, services: usize) -> Config {
    let flags = [
        ("database", database.to_owned()),
        ("listen", "127.0.0.1:0".to_owned()),
        ("ledger.kind", "scabbard".to_owned()),
        ("ledger.urls", ledger.url()),
        ("ledger.key_file", key.display().to_string()),
        ("ledger.event_sockets", services.to_string()),
    ];
    let flags = flags.map(|(name, text)| (Setting::named(name).unwrap(), text));
    Config::load(None, std::iter::empty(), flags.to_vec()).unwrap()
}

fn body(number: usize) -> Vec<u8> {
    BatchList { batches: vec![batch(number)] }.encode_to_vec()
}

/// Each client has some of the services, and sends their batches one after the other.
fn send_all(url: &str, services: usize, bodies: &Arc<Vec<(usize, Vec<u8>)>>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let http = HttpClient::new(&HttpOptions::default()).unwrap();
    let clients: Vec<_> = (0..CLIENTS.min(services))
        .map(|client| {
            let (http, bodies, url) = (http.clone(), Arc::clone(bodies), url.to_owned());
            runtime.spawn(async move {
                for (number, body) in bodies.iter().filter(|(n, _)| n % CLIENTS == client) {
                    let url = format!("{url}/batches?service_id={}", service(*number));
                    let headers = [("content-type", "application/octet-stream")];
                    let answer = http.post(&url, &headers, body.clone()).await.unwrap();
                    assert_eq!(answer.status, 202, "{}", answer.text());
                }
            })
        })
        .collect();
    for client in clients {
        runtime.block_on(client).unwrap();
    }
}

fn wait_until_committed(running: &RunningServer, batches: usize) {
    let started = Instant::now();
    while running.counts().committed < batches as u64 {
        assert!(started.elapsed() < Duration::from_secs(300), "{:?}", running.counts());
        thread::sleep(Duration::from_millis(1));
    }
}

/// The milliseconds from each commit to the next one of the same service. The ledger commits a batch
/// when its POST arrives.
fn gaps(ledger: &LedgerSim) -> Vec<f64> {
    let mut last: HashMap<ServiceId, Timestamp> = HashMap::new();
    let mut gaps = Vec::new();
    for entry in ledger.record() {
        if let Some(before) = last.insert(entry.service_id, entry.time) {
            gaps.push(entry.time.since(before).as_secs_f64() * 1_000.0);
        }
    }
    gaps
}
