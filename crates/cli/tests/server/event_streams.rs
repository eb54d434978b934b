//! Event streams that a node keeps open and sends nothing on, and how the server ends its own.

use std::time::{Duration, Instant};

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, WebSocketCounts, When};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch, signed_batches},
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const SILENT: &str = "the event stream is silent";

/// A Sawtooth ledger with a server, whose batches are submitted one by one.
struct Scenario {
    harness: BatchHarness,
    batches: Vec<SignedBatch>,
}

impl Scenario {
    fn new() -> Self {
        let harness = BatchHarness::sawtooth_with(|ledger| {
            ledger.fault(Fault::EventsEndWithClient, When::Always)
        });
        Self { harness, batches: Vec::new() }
    }

    /// Starts a server, which listens to events once it has a batch.
    fn serve(&mut self) -> BatchServer {
        let server = self.harness.serve();
        self.commit_one(&server);
        wait_until("the server listens to events", || self.harness.ledger.websockets().open == 1);
        server
    }

    fn commit_one(&mut self, server: &BatchServer) {
        self.batches.push(signed_batch("global", self.batches.len()));
        server.submit(&self.batches[self.batches.len() - 1..]);
        self.wait_until_committed();
    }

    /// How long it takes until these batches, which are submitted together, are committed.
    fn commit(&mut self, server: &BatchServer, count: usize) -> Duration {
        let first = self.batches.len();
        self.batches.extend((first..first + count).map(|number| signed_batch("global", number)));
        let started = Instant::now();
        server.submit(&self.batches[first..]);
        self.wait_until_committed();
        started.elapsed()
    }

    fn wait_until_committed(&self) {
        let store = self.harness.store();
        wait_until("the batches are committed", || {
            count_in_state(&store, BatchState::Committed) == self.batches.len()
        });
    }

    fn commit_until_logged(&mut self, server: &BatchServer, text: &str) {
        let started = Instant::now();
        while !server.process.stderr().contains(text) {
            self.commit_one(server);
        }
        println!("logged {text:?} after {:.2?}", started.elapsed());
    }
}

fn silent_event_streams(server: &BatchServer) -> f64 {
    let health = send(server.address, &request("GET", "/health", &[], &[])).unwrap();
    assert_eq!(health.status, 200, "{health:?}");
    health.json()["silent_event_streams"].as_f64().unwrap()
}

#[test]
fn silent_event_stream_is_noticed_until_it_recovers() {
    let mut scenario = Scenario::new();
    let killed = scenario.serve();
    let with_events = scenario.commit(&killed, 20);
    assert!(!killed.process.stderr().contains(SILENT));
    killed.process.kill();
    wait_until("its death has ended all events", || {
        scenario.harness.ledger.websockets() == WebSocketCounts { broken: 1, ..Default::default() }
    });

    let server = scenario.serve();
    scenario.commit_until_logged(&server, SILENT);
    assert!(server.process.stderr().contains(&scenario.harness.ledger.url()), "names the node");
    assert!(silent_event_streams(&server) > 0.5);
    let without_events = scenario.commit(&server, 20);
    println!("20 batches: {with_events:.2?} with events, {without_events:.2?} without");
    assert!(without_events < 10 * with_events, "{without_events:?}, {with_events:?}");

    scenario.harness.ledger.restart_interface();
    scenario.commit_until_logged(&server, "the event stream reports commits again");
    assert!(silent_event_streams(&server) < 0.5);
    let log = server.process.stderr();
    assert_eq!(log.matches(SILENT).count(), 1, "{log}");
    server.stop();
}

fn assert_stop_closes_event_streams(harness: &BatchHarness) {
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let services = harness.services.len();
    wait_until("all event streams are open", || harness.ledger.websockets().open == services);
    server.stop();
    let expected = WebSocketCounts { closed: services, ..WebSocketCounts::default() };
    wait_until("they are closed", || harness.ledger.websockets().open == 0);
    assert_eq!(harness.ledger.websockets(), expected);
}

#[test]
fn stopped_server_closes_its_event_stream_on_sawtooth() {
    assert_stop_closes_event_streams(&BatchHarness::sawtooth());
}

#[test]
fn stopped_server_closes_its_event_streams_on_scabbard() {
    assert_stop_closes_event_streams(&BatchHarness::scabbard(3));
}

#[test]
fn evicted_event_stream_is_closed() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve_with(&[("--ledger-event-sockets", "1")]);
    let mut batches = vec![signed_batch(&harness.services[0], 0)];
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    wait_until("the first stream is open", || harness.ledger.websockets().open == 1);
    // A service that was followed recently is not evicted.
    wait_until("another stream has replaced it", || {
        batches.push(signed_batch(&harness.services[1], batches.len()));
        server.submit(&batches[batches.len() - 1..]);
        harness.wait_until_all_committed(&batches);
        harness.ledger.websockets().closed >= 1
    });
    wait_until("it is open", || harness.ledger.websockets().open == 1);
    server.stop();
    assert_eq!(harness.ledger.websockets().broken, 0);
}
