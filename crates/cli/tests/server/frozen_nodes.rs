//! A node that accepts requests and answers none must not delay the services of other nodes.

use std::time::{Duration, Instant};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::LedgerSim;
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// Many more than there are connections for status requests.
const FROZEN_SERVICES: usize = 60;
/// How many batches are timed before and while the node is frozen.
const BATCHES: usize = 12;
/// With all connections at the frozen node, a batch would take as long as a request may: about ninety
/// times as long. The machine may be busy.
const GREATEST_RATIO: u32 = 8;

/// Without events, so that only polls notice the end of a batch.
const FLAGS: &[(&str, &str)] = &[
    ("--ledger-event-sockets", "0"),
    ("--ledger-request-timeout", "5s"),
    ("--testing-sending-limit", "6s"),
    ("--testing-total-limit", "7s"),
    ("--testing-accept-absence-after", "1h"),
    ("--poll-hold-after", "1h"),
];

/// A server with two nodes: one for the service of the harness, and one that has a batch of each of many
/// services and ends none.
struct TwoNodes {
    harness: BatchHarness,
    other: LedgerSim,
    server: BatchServer,
    store: Store,
}

impl TwoNodes {
    fn new() -> Self {
        let harness = BatchHarness::scabbard(1);
        let services: Vec<String> =
            (0..FROZEN_SERVICES).map(|n| format!("other-00000::o{n:03}")).collect();
        let scopes = services.iter().map(|service| service.parse::<ServiceScopeId>().unwrap());
        let other = LedgerSim::scabbard(scopes).pending_for(Duration::from_hours(1));
        let other = other.start().unwrap();
        let at_other: Vec<String> =
            services.iter().map(|service| format!("{service}={}", other.url())).collect();
        let nodes = at_other.join(",");
        let flags = [FLAGS, &[("--services-node", nodes.as_str())]].concat();
        let (server, store) = (harness.serve_with(&flags), harness.store());
        let two_nodes = Self { harness, other, server, store };
        two_nodes.server.submit(&signed_batches(&services, 1));
        wait_until("the other node has all batches", || {
            count_in_state(&two_nodes.store, BatchState::Pending) == FROZEN_SERVICES
        });
        two_nodes
    }

    /// Submits batches one after the other, and returns the longest time that one took.
    fn longest_of(&self, batches: &[SignedBatch]) -> Duration {
        let time = |batch: &SignedBatch| {
            let started = Instant::now();
            self.server.submit(std::slice::from_ref(batch));
            wait_until("the batch is committed", || {
                let stored = self.store.find(&batch.batch_id).unwrap().remove(0);
                stored.progress.state == BatchState::Committed
            });
            started.elapsed()
        };
        batches.iter().map(time).max().unwrap_or_default()
    }
}

#[test]
fn frozen_node_does_not_delay_polls_of_another_one() {
    let nodes = TwoNodes::new();
    let batches = signed_batches(&nodes.harness.services, 2 * BATCHES);
    let before = nodes.longest_of(&batches[..BATCHES]);
    nodes.other.freeze();
    let frozen = nodes.longest_of(&batches[BATCHES..]);
    println!("longest before: {before:?}, while the other node is frozen: {frozen:?}");
    assert!(frozen <= before.max(Duration::from_millis(50)) * GREATEST_RATIO);
    nodes.server.stop_with("KILL");
}

/// The batches at the frozen node end soon after it answers again.
#[test]
fn frozen_node_is_polled_again_when_it_answers() {
    let nodes = TwoNodes::new();
    nodes.other.freeze();
    nodes.server.process.wait_for_log("status requests fail");
    let requests = nodes.other.requests().len();
    nodes.other.thaw();
    wait_until("all services are polled", || {
        nodes.other.requests().len() >= requests + 2 * FROZEN_SERVICES
    });
    nodes.server.stop();
}
