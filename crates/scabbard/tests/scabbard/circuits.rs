//! Evidence from the other node of a circuit, when a node is killed.

use std::{thread, time::Duration};

use grid_batch_core::{Evidence, LedgerEvents, LedgerStatus, Outcome, ServiceScopeId};
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_scabbard::PeerService;

use crate::{
    batches::{SERVICE, scope},
    test_ledger::{TestLedger, read_in_background},
};

const SECOND: Duration = Duration::from_secs(1);
const LOST: u32 = 1_000;
/// More than the replay shows.
const LONG: u32 = 65;
const HIGHER_ID: &str = "abcDE-F0123::gsBB";
const LOWER_ID: &str = "abcDE-F0123::gs00";

/// A circuit of two nodes. Batches are sent to alpha.
struct Circuit {
    ledger: TestLedger,
    peer: LedgerSim,
}

impl Circuit {
    /// A circuit at whose other node the service has this id, with this many committed batches. The
    /// events of both nodes are received.
    async fn start(peer_id: &str, count: u32) -> Self {
        let peer_id: ServiceScopeId = peer_id.parse().unwrap();
        let mut peer = None;
        let step = |ledger: grid_batch_ledger_sim::LedgerSimBuilder| {
            ledger.pending_for(SECOND).valid_for(SECOND)
        };
        let ledger = TestLedger::with_peers(step, [], |alpha, clock| {
            let beta = LedgerSim::scabbard([peer_id.clone()])
                .clock(clock)
                .seed(2)
                .join_circuit_of(alpha, [(scope(), peer_id.clone())]);
            let beta = step(beta).start().unwrap();
            let url = beta.url();
            peer = Some(beta);
            vec![PeerService { service: scope(), peer: peer_id.clone(), url }]
        });
        let circuit = Self { ledger, peer: peer.unwrap() };
        circuit.commit(0..count).await;
        circuit.listen().await;
        circuit
    }

    async fn commit(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert_eq!(self.ledger.send(number).await, Outcome::Accepted);
            self.advance_until_committed(number).await;
        }
    }

    async fn advance_until_committed(&self, number: u32) {
        while self.ledger.status(number).await != LedgerStatus::Committed {
            self.ledger.advance(1);
        }
    }

    /// Waits until the events of the peer are received, then subscribes to those of the node.
    async fn listen(&self) {
        drop(self.ledger.subscribe().await);
        for number in 2_000.. {
            self.ledger.send_with_fault(Fault::ResetBefore, number).await;
            let detail = self.ledger.report(number).await.detail.unwrap();
            if detail.contains("events of another node were received") {
                break;
            }
        }
        self.subscribe().await;
    }

    async fn subscribe(&self) {
        read_in_background(self.ledger.subscribe().await);
    }

    /// Kills the node that batches are sent to, and starts it again.
    async fn restart_node(&self) {
        kill(&self.ledger.sim);
        assert!(self.ledger.scabbard.events().subscribe(SERVICE).await.is_err());
        start_again(&self.ledger.sim);
        self.subscribe().await;
    }

    async fn detail(&self, number: u32) -> String {
        self.ledger.report(number).await.detail.unwrap()
    }

    /// Sends the batch again, and checks that it is then committed once.
    async fn assert_committed_by_attempt(&self, number: u32, attempt: u32) {
        let before = self.ledger.applied_count();
        assert_eq!(self.ledger.send_again(number, attempt).await, Outcome::Accepted);
        self.advance_until_committed(number).await;
        assert_eq!(self.ledger.applied_count(), before + 1);
        assert_eq!(self.peer.record().len(), before + 1);
    }
}

/// Kills a node. The simulator waits for its own runtime, which the test's runtime must not.
fn kill(node: &LedgerSim) {
    thread::scope(|scope| scope.spawn(|| node.kill()).join().unwrap());
}

fn start_again(node: &LedgerSim) {
    thread::scope(|scope| scope.spawn(|| node.start_again()).join().unwrap());
}

#[tokio::test]
async fn batch_in_the_queue_of_a_killed_node_is_lost_at_once() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Present);
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
    circuit.assert_committed_by_attempt(LOST, 2).await;
}

#[tokio::test]
async fn batch_of_a_node_that_does_not_coordinate_needs_time() {
    let circuit = Circuit::start(LOWER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 59).await, Evidence::Inconclusive);
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
}

#[tokio::test]
async fn ambiguous_attempt_at_a_killed_node_needs_time() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send_with_fault(Fault::ResetAfter, LOST).await;
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 320).await, Evidence::Inconclusive);
    circuit.ledger.advance(10);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Absent);
}

#[tokio::test]
async fn batch_that_stays_valid_at_the_peer_is_lost_in_time() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.status(LOST).await, LedgerStatus::Valid);
    circuit.restart_node().await;
    // A second has passed with the subscription.
    assert_eq!(circuit.ledger.evidence_after(LOST, 31).await, Evidence::Present);
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
    circuit.assert_committed_by_attempt(LOST, 2).await;
}

#[tokio::test]
async fn second_kill_is_survived_as_the_first() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    for attempt in 1..4 {
        circuit.ledger.send_again(LOST, attempt).await;
        circuit.restart_node().await;
        assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost, "{attempt}");
    }
    circuit.assert_committed_by_attempt(LOST, 4).await;
}

#[tokio::test]
async fn commit_before_the_kill_is_known_from_the_peer() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    circuit.ledger.advance(3_600);
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.status(LOST).await, LedgerStatus::NotReported);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Committed);
}

#[tokio::test]
async fn kill_of_both_nodes_proves_nothing_of_a_long_history() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    kill(&circuit.peer);
    start_again(&circuit.peer);
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 3_600).await, Evidence::Inconclusive);
    let detail = circuit.detail(LOST).await;
    for part in ["reports Unknown; ", HIGHER_ID, "its event stream broke", "roots are equal"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

#[tokio::test]
async fn nothing_is_proved_while_the_peer_is_down() {
    let circuit = Circuit::start(HIGHER_ID, 1).await;
    circuit.ledger.send(LOST).await;
    kill(&circuit.peer);
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 3_600).await, Evidence::Inconclusive);
    assert!(circuit.detail(LOST).await.contains("gives no status"));
    start_again(&circuit.peer);
    assert_eq!(circuit.ledger.evidence_after(LOST, 60).await, Evidence::Lost);
}

#[tokio::test]
async fn killed_peer_leaves_a_valid_batch_that_is_lost() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.send(LOST).await;
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.status(LOST).await, LedgerStatus::Valid);
    kill(&circuit.peer);
    circuit.ledger.advance(1);
    start_again(&circuit.peer);
    assert_eq!(circuit.ledger.evidence_after(LOST, 31).await, Evidence::Present);
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
    circuit.assert_committed_by_attempt(LOST, 2).await;
}

#[tokio::test]
async fn nodes_with_different_states_prove_no_absence() {
    let circuit = Circuit::start(HIGHER_ID, LONG).await;
    circuit.ledger.sim.inject(Fault::MissedCommit, When::Next(1));
    circuit.ledger.send(LOST).await;
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.status(LOST).await, LedgerStatus::Valid);
    circuit.restart_node().await;
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Committed, "the peer has it");

    let next = LOST + 1;
    circuit.ledger.send(next).await;
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.status(next).await, LedgerStatus::NotReported, "it is not sent");
    assert_eq!(circuit.ledger.evidence_after(next, 59).await, Evidence::Inconclusive);
    circuit.ledger.advance(3_600);
    assert_eq!(circuit.ledger.evidence(next).await, Evidence::Inconclusive);
    assert!(circuit.detail(next).await.contains("no batch of this circuit can commit"));
}

/// The batch is Valid at alpha, and beta is frozen.
async fn circuit_with_frozen_peer(peer_id: &str) -> Circuit {
    let circuit = Circuit::start(peer_id, LONG).await;
    circuit.ledger.send(LOST).await;
    circuit.ledger.advance(1);
    circuit.peer.freeze();
    assert_eq!(circuit.ledger.status(LOST).await, LedgerStatus::Valid);
    circuit
}

#[tokio::test]
async fn batch_given_up_for_a_frozen_peer_is_lost_when_it_answers() {
    let circuit = circuit_with_frozen_peer(HIGHER_ID).await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 45).await, Evidence::Present);
    circuit.peer.thaw();
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
    circuit.assert_committed_by_attempt(LOST, 2).await;
}

#[tokio::test]
async fn short_outage_explains_no_loss() {
    let circuit = circuit_with_frozen_peer(HIGHER_ID).await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 20).await, Evidence::Present);
    circuit.peer.thaw();
    circuit.advance_until_committed(LOST).await;
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Committed);

    let next = LOST + 1;
    circuit.ledger.send_with_fault(Fault::DroppedValid, next).await;
    circuit.ledger.advance(2);
    assert_eq!(circuit.ledger.status(next).await, LedgerStatus::Valid);
    assert_eq!(circuit.ledger.evidence_after(next, 329).await, Evidence::Present);
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.evidence(next).await, Evidence::Lost);
}

#[tokio::test]
async fn coordinator_that_was_frozen_gets_its_whole_timeout() {
    let circuit = circuit_with_frozen_peer(LOWER_ID).await;
    assert_eq!(circuit.ledger.evidence_after(LOST, 45).await, Evidence::Present);
    circuit.peer.thaw();
    assert_eq!(circuit.ledger.evidence_after(LOST, 32).await, Evidence::Present);
    circuit.ledger.advance(1);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
}
