//! Nodes of a circuit that are killed, and circuits that no longer commit anything.

use std::{
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::{BatchQueryStore, ServicePause};
use grid_batch_core::{Clock, ServiceId, ServiceScopeId, SystemClock};
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, SentTwice, When};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list, signed_batches},
    http::{Response, request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, COORDINATOR_TIMEOUT, count_in_state};

/// How long a batch is pending, and how long it is voted on.
const STEP: Duration = Duration::from_millis(30);
const PEER: &str = "p0000";

const PAUSED: &str = "the state roots of the nodes differ: no batch of this circuit can commit";

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
        self.serve_with(&[("--poll-hold-after", "6s")])
    }

    fn serve_with(&self, flags: &[(&str, &str)]) -> BatchServer {
        let peers = format!("{}={PEER}@{}", self.harness.services[0], self.beta.url());
        self.harness.serve_with(&[&[("--services-peers", peers.as_str())], flags].concat())
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

    /// Waits until the service is paused because the nodes disagree, and nothing is sent again and again.
    fn assert_paused_because_the_circuit_is_broken(&self, batch: &SignedBatch) {
        wait_until("the service is paused", || self.pause().is_some());
        let pause = self.pause().unwrap();
        assert!(pause.states_differ && pause.operator.is_none(), "{pause:?}");
        let received = self.alpha().times_received(&batch.batch_id);
        assert!(received <= 1, "it was sent {received} times");
    }

    /// The pause of the service.
    fn pause(&self) -> Option<ServicePause> {
        let service: ServiceId = self.harness.services[0].parse().unwrap();
        self.harness.store().pauses(std::slice::from_ref(&service)).unwrap().remove(&service)
    }

    fn roots_differ(&self) -> bool {
        let (circuit, service) = self.harness.services[0].split_once("::").unwrap();
        let root = |node: &LedgerSim, service: &str| {
            let token = CylinderToken::new(&SigningKey::from_seed(9));
            let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
            let path = format!("/scabbard/{circuit}/{service}/state_root");
            let request = request("GET", &path, &[&authorization], &[]);
            send(node.address(), &request).unwrap().json()
        };
        root(self.alpha(), service) != root(&self.beta, PEER)
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

/// The peer does not answer until the coordinator has given the batch up. Nothing but its return may be waited
/// for, so all other limits are long.
fn assert_batches_go_on_when_the_peer_answers(event_sockets: &str) {
    let circuit = Circuit::with(|builder| builder.valid_for(5 * STEP));
    let long = [("--ledger-late-arrival-limit", "1h"), ("--testing-quiet-after", "1h")];
    let server =
        circuit.serve_with(&[&long[..], &[("--ledger-event-sockets", event_sockets)]].concat());
    let batches = circuit.batches(3);
    server.submit(&batches);
    wait_until("the first batch is voted on", || circuit.status(&batches[0]) == "Valid");
    circuit.beta.freeze();
    server.wait_for_outage(3 * COORDINATOR_TIMEOUT);
    circuit.beta.thaw();
    let returned = Instant::now();
    circuit.wait_until_all_committed(&batches);
    let took = returned.elapsed();
    println!("all are committed {took:?} after the peer answered");
    assert_eq!(circuit.alpha().times_received(&batches[0].batch_id), 2, "it was not given up");
    assert!(took < 10 * COORDINATOR_TIMEOUT, "{took:?}");
    server.stop();
}

#[test]
fn batches_go_on_when_a_frozen_peer_answers() {
    assert_batches_go_on_when_the_peer_answers("100");
}

#[test]
fn batches_go_on_when_a_peer_answers_without_events() {
    assert_batches_go_on_when_the_peer_answers("0");
}

#[test]
fn peer_that_is_down_stops_nothing() {
    let harness = BatchHarness::scabbard(2);
    let peers = format!("{}=p0000@http://127.0.0.1:1", harness.services[0]);
    let server = harness.serve_with(&[("--services-peers", &peers)]);
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
    circuit.assert_paused_because_the_circuit_is_broken(&batches[1]);
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
    circuit.assert_paused_because_the_circuit_is_broken(&batches[1]);
    server.stop();
}

/// The peer dies while a batch is voted on, and comes back with another state.
fn break_circuit(circuit: &Circuit, batches: &[SignedBatch]) -> usize {
    let store = circuit.harness.store();
    wait_until("some batches are committed", || count_in_state(&store, BatchState::Committed) >= 3);
    circuit.beta.inject(Fault::WritesAlone, When::Next(1));
    // The fault occurs if a batch is voted on.
    wait_until("the peer has written its state alone", || {
        circuit.beta.kill();
        circuit.beta.start_again();
        circuit.roots_differ()
    });
    let is_committed = |batch: &&SignedBatch| {
        let stored = store.find(&batch.batch_id).unwrap().remove(0);
        stored.progress.state == BatchState::Committed
    };
    wait_until("the service is paused", || circuit.pause().is_some());
    batches.iter().filter(is_committed).count()
}

/// How often the nodes have received any of these batches.
fn times_received(circuit: &Circuit, batches: &[SignedBatch]) -> usize {
    batches.iter().map(|batch| circuit.alpha().times_received(&batch.batch_id)).sum()
}

#[test]
fn broken_circuit_goes_on_when_it_is_repaired() {
    let circuit = Circuit::with(|builder| builder.valid_for(5 * STEP));
    let server = circuit.serve();
    let batches = circuit.batches(40);
    server.submit(&batches);
    let started = Instant::now();
    let committed = break_circuit(&circuit, &batches);
    println!("{committed} committed; said after {:?}", started.elapsed());

    // What waits is told by all, and nothing is sent.
    let service = &circuit.harness.services[0];
    let explained = server.get(&format!("/v1/services/{service}/explain")).to_string();
    assert!(explained.contains(PAUSED) && !explained.contains("resubmit"), "{explained}");
    let next = &batches[committed];
    let explained = server.get(&format!("/v1/batches/{}/explain", next.batch_id)).to_string();
    assert!(explained.contains(PAUSED) && !explained.contains("resubmit"), "{explained}");
    wait_until("the health tells it", || {
        let health = server.get("/health");
        let services = &health["parts"]["services"];
        services["status"] == "degraded" && services["reason"].to_string().contains(PAUSED)
    });
    let received = times_received(&circuit, &batches);
    assert!(received <= committed + 1, "{received} POSTs, {committed} committed");

    // It cannot be forced.
    let stored = circuit.harness.store().find(&next.batch_id).unwrap().remove(0);
    let attempt = stored.progress.attempts.to_string();
    let id = next.batch_id.to_string();
    let decision = format!("{id}@{attempt}");
    let arguments = ["decide", &decision, "absent", "--reason", "looks absent"];
    let refused = circuit.harness.run_command(&arguments);
    assert!(refused.exit_code != Some(0), "{refused:?}");
    assert!(refused.stderr.contains("the state roots of the nodes differ"), "{refused:?}");
    assert_eq!(times_received(&circuit, &batches), received);

    let repaired = Instant::now();
    circuit.beta.restore_state();
    circuit.wait_until_all_committed(&batches);
    println!("all committed {:?} after the repair", repaired.elapsed());
    assert_eq!(circuit.pause(), None);
    server.stop();
}
