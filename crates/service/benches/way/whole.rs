//! Everything together: clients, intake, store, queue, submitter, ledger, poller, and again.

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

/// What came of it.
pub struct Measured {
    pub per_second: f64,
    /// From a commit to the arrival of the service's next POST, by the ledger's own record.
    pub gap_median: f64,
    pub gap_99: f64,
}

const CLIENTS: usize = 32;

pub fn measure(database: &str, services: usize, batches: usize) -> Measured {
    let scopes = (0..services).map(|number| service(number).parse().unwrap());
    let ledger = LedgerSim::scabbard(scopes).without_back_pressure().start().unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "7".repeat(64)).unwrap();
    let running = Server::start(&config(database, &ledger, key.path(), services)).unwrap();
    let bodies: Vec<(usize, Vec<u8>)> = (0..batches).map(|n| (n % services, body(n))).collect();

    let begun = Instant::now();
    hand_in(&running.url(), services, &Arc::new(bodies));
    until_all_are_committed(&running, batches);
    let time = begun.elapsed();
    running.stop().unwrap();

    let mut gaps = gaps(&ledger);
    gaps.sort_by(f64::total_cmp);
    let at = |part: f64| gaps[((gaps.len() - 1) as f64 * part) as usize];
    Measured {
        per_second: batches as f64 / time.as_secs_f64(),
        gap_median: at(0.5),
        gap_99: at(0.99),
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

/// Each client cares for some services, and hands their batches in one after the other.
fn hand_in(url: &str, services: usize, bodies: &Arc<Vec<(usize, Vec<u8>)>>) {
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

fn until_all_are_committed(running: &RunningServer, batches: usize) {
    let begun = Instant::now();
    while running.counts().committed < batches as u64 {
        assert!(begun.elapsed() < Duration::from_secs(300), "{:?}", running.counts());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Milliseconds from each commit to the next of the same service. The ledger commits what arrives
/// at once, so that a commit is the arrival of its POST.
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
