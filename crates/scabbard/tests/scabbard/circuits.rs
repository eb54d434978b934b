//! Evidence from the other node of a circuit when a node is killed.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_ledger_sim::{Fault, When};

use crate::{
    circuit::{Circuit, HIGHER_ID, LONG, LOST, LOWER_ID, kill, start_again},
    test_ledger::catch_up,
};

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
async fn events_count_at_once_only_if_the_node_answers() {
    let circuit = Circuit::start_without_events(HIGHER_ID, LONG).await;
    // The stream is not read, so pings are not answered.
    let mut events = circuit.ledger.subscribe().await;
    catch_up(&mut events);
    for attempt in [1, 2] {
        circuit.ledger.sim.inject(Fault::DroppedValid, When::Next(1));
        assert_eq!(circuit.ledger.send_again(LOST, attempt).await, Outcome::Accepted);
        while circuit.ledger.status(LOST).await != LedgerStatus::Valid {
            circuit.ledger.advance(1);
        }
    }
    kill(&circuit.peer);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Present);
    start_again(&circuit.peer);
    assert_eq!(circuit.ledger.evidence_after(LOST, 40).await, Evidence::Present);
    circuit.ledger.advance(6);
    assert_eq!(circuit.ledger.evidence(LOST).await, Evidence::Lost);
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
