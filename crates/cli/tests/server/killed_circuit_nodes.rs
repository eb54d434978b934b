//! Nodes of a circuit that are killed, and circuits that no longer commit anything.

use std::{
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use grid_batch_core::{BatchState, Clock, ServiceId, ServiceScopeId, StoredBatch, SystemClock};
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, SentTwice, When};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list, signed_batches},
    http::{Response, request, send},
    wait::{wait_for, wait_until},
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// How long a batch is pending, and how long it is voted on.
const STEP: Duration = Duration::from_millis(30);
/// Less than half of the time after which a batch that stays Valid counts as dropped.
const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(800);
const PEER: &str = "p0000";

/// A circuit of two nodes. Batches are sent to alpha.
struct Circuit {
    harness: BatchHarness,
    beta: LedgerSim,
    peer: ServiceId,
}

impl Circuit {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(configure: impl Fn(LedgerSimBuilder) -> LedgerSimBuilder) -> Self {
        let configure = |builder: LedgerSimBuilder| {
            let builder = builder.pending_for(STEP).valid_for(STEP);
            configure(builder.coordinator_timeout(COORDINATOR_TIMEOUT))
        };
        let harness = BatchHarness::scabbard_with(1, configure);
        let service: ServiceScopeId = harness.services[0].parse().unwrap();
        let peer: ServiceScopeId = format!("{}::{PEER}", service.circuit()).parse().unwrap();
        let beta = configure(LedgerSim::scabbard([peer.clone()]));
        let beta = beta.join_circuit_of(&harness.ledger, [(service, peer.clone())]);
        let peer = peer.to_string().parse().unwrap();
        Self { beta: beta.start().unwrap(), harness, peer }
    }

    fn alpha(&self) -> &LedgerSim {
        &self.harness.ledger
    }

    fn serve(&self) -> BatchServer {
        let peers = format!("{}={PEER}@{}", self.harness.services[0], self.beta.url());
        self.harness.serve_with(&[("--ledger-peers", &peers), ("--poll-hold-after", "6s")])
    }

    fn batches(&self, count: usize) -> Vec<SignedBatch> {
        signed_batches(&self.harness.services, count)
    }

    /// Waits until all batches are committed without an operator.
    fn wait_until_all_committed(&self, batches: &[SignedBatch]) {
        let store = self.harness.store();
        wait_until("all batches are committed", || {
            assert_none_is_held(&store);
            count_in_state(&store, BatchState::Committed) == batches.len()
        });
        self.assert_applied_once_and_in_order(batches);
    }

    fn assert_applied_once_and_in_order(&self, batches: &[SignedBatch]) {
        let promised = batch_ids(batches);
        let at_peer: Vec<_> =
            promised.iter().map(|(_, batch_id)| (self.peer.clone(), *batch_id)).collect();
        for audit in [self.alpha().audit(&promised), self.beta.audit(&at_peer)] {
            assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
        }
    }

    /// Waits until this batch is held because the nodes disagree, and not sent again and again.
    fn assert_held_because_the_circuit_is_broken(&self, batch: &SignedBatch) {
        let store = self.harness.store();
        let held = wait_for("the batch is held", || held(&store).pop());
        assert_eq!(held.batch_id, batch.batch_id);
        let reason = held.held.unwrap().reason;
        assert!(reason.contains("state root"), "{reason}");
        let received = self.alpha().times_received(&batch.batch_id);
        assert!(received <= 2, "it was sent {received} times");
    }

    /// What alpha says about a batch.
    fn status(&self, batch: &SignedBatch) -> String {
        let end = format!("batch_statuses?ids={}", batch.batch_id);
        let response = self.request_to_alpha("GET", &end, &[]);
        response.json()[0]["status"]["statusType"].as_str().unwrap().to_owned()
    }

    /// Sends a batch to alpha as another client does.
    fn send_past_the_server(&self, batch: &SignedBatch) {
        let body = encode_batch_list(std::slice::from_ref(batch));
        assert_eq!(self.request_to_alpha("POST", "batches", &body).status, 202);
    }

    fn request_to_alpha(&self, method: &str, end: &str, body: &[u8]) -> Response {
        let (circuit, service) = self.harness.services[0].split_once("::").unwrap();
        let token = CylinderToken::new(&SigningKey::from_seed(9));
        let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
        let path = format!("/scabbard/{circuit}/{service}/{end}");
        let request = request(method, &path, &[&authorization], body);
        send(self.alpha().address(), &request).unwrap()
    }
}

fn held(store: &Store) -> Vec<StoredBatch> {
    store.held_batches(None, 100).unwrap()
}

fn assert_none_is_held(store: &Store) {
    let held = held(store);
    assert!(held.is_empty(), "{held:?}");
}

fn printed_seed() -> Rng {
    let seed = SystemClock.now().as_micros().unsigned_abs();
    println!("seed {seed}");
    Rng::with_seed(seed)
}

/// Kills the node at random moments while each of these batches is under way.
fn kill_while_under_way<'a>(
    circuit: &Circuit,
    node: &LedgerSim,
    batches: impl Iterator<Item = &'a SignedBatch>,
    random: &mut Rng,
) {
    let store = circuit.harness.store();
    for batch in batches {
        wait_until("the batch is at the node", || {
            assert_none_is_held(&store);
            circuit.alpha().times_received(&batch.batch_id) > 0
        });
        thread::sleep(STEP.mul_f64(2.0 * random.f64()));
        node.kill();
        node.start_again();
    }
}

fn assert_kills_need_no_operator(node: impl Fn(&Circuit) -> &LedgerSim) {
    let mut random = printed_seed();
    let circuit = Circuit::new();
    let server = circuit.serve();
    let batches = circuit.batches(20);
    server.submit(&batches);
    let started = Instant::now();
    let killed = batches.chunks(5).map(|chunk| &chunk[random.usize(..chunk.len())]);
    let killed: Vec<_> = killed.collect();
    kill_while_under_way(&circuit, node(&circuit), killed.into_iter(), &mut random);
    circuit.wait_until_all_committed(&batches);
    println!("20 batches with 4 kills took {:?}", started.elapsed());
    server.stop();
}

#[test]
fn kills_of_the_node_need_no_operator() {
    assert_kills_need_no_operator(|circuit| circuit.alpha());
}

#[test]
fn kills_of_the_peer_need_no_operator() {
    assert_kills_need_no_operator(|circuit| &circuit.beta);
}

/// The batch is dropped twice: by the kill, and because the peer has the first proposal.
#[test]
fn batch_that_a_leftover_proposal_drops_needs_no_operator() {
    let circuit = Circuit::with(|builder| builder.fault(Fault::LeftoverProposal, When::Always));
    let server = circuit.serve();
    let batches = circuit.batches(3);
    server.submit(&batches);
    wait_until("the first batch is at the node", || {
        circuit.alpha().times_received(&batches[0].batch_id) > 0
    });
    thread::sleep(STEP + STEP / 2);
    circuit.alpha().kill();
    circuit.alpha().start_again();
    circuit.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn batch_waits_while_its_node_is_down() {
    let circuit = Circuit::new();
    let server = circuit.serve();
    let batches = circuit.batches(3);
    server.submit(&batches[..1]);
    circuit.wait_until_all_committed(&batches[..1]);
    circuit.alpha().kill();
    server.submit(&batches[1..]);
    let store = circuit.harness.store();
    wait_until("the next batch was tried", || {
        let stored = store.find(&batches[1].batch_id).unwrap().remove(0);
        stored.progress.attempts > 0 && stored.last_error.is_some()
    });
    circuit.alpha().start_again();
    circuit.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn peer_that_is_down_stops_nothing() {
    let harness = BatchHarness::scabbard(2);
    let peers = format!("{}=p0000@http://127.0.0.1:1", harness.services[0]);
    let server = harness.serve_with(&[("--ledger-peers", &peers)]);
    let batches = signed_batches(&harness.services, 5);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

fn assert_missed_commit_is_reported(killed: impl Fn(&Circuit) -> &LedgerSim) {
    let circuit = Circuit::with(|builder| builder.valid_for(10 * STEP));
    let server = circuit.serve();
    let batches = circuit.batches(3);
    server.submit(&batches[..1]);
    wait_until("the first batch is voted on", || circuit.status(&batches[0]) == "Valid");
    killed(&circuit).inject(Fault::MissedCommit, When::Next(1));
    killed(&circuit).kill();
    killed(&circuit).start_again();
    let store = circuit.harness.store();
    wait_until("the first batch ends", || count_in_state(&store, BatchState::Committed) == 1);
    server.submit(&batches[1..]);
    circuit.assert_held_because_the_circuit_is_broken(&batches[1]);
    server.stop();
}

#[test]
fn commit_that_the_node_missed_is_reported() {
    assert_missed_commit_is_reported(|circuit| circuit.alpha());
}

#[test]
fn commit_that_the_peer_missed_is_reported() {
    assert_missed_commit_is_reported(|circuit| &circuit.beta);
}

#[test]
fn circuit_that_a_second_execution_broke_is_reported() {
    let circuit = Circuit::with(|builder| builder.sent_twice(SentTwice::StuckValid));
    let server = circuit.serve();
    let batches = circuit.batches(3);
    server.submit(&batches[..1]);
    circuit.wait_until_all_committed(&batches[..1]);
    circuit.send_past_the_server(&batches[0]);
    wait_until("the first batch is applied twice", || circuit.alpha().record().len() == 2);
    server.submit(&batches[1..]);
    circuit.assert_held_because_the_circuit_is_broken(&batches[1]);
    server.stop();
}
