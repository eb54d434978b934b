//! Two nodes of one circuit, at which a service has different ids.

use std::time::Duration;

use grid_batch_core::ServiceScopeId;
use grid_batch_ledger_sim::{
    Entry, Fault, LedgerSim, LedgerSimBuilder, SentTwice, StartError, When,
};
use grid_batch_protocol::Batch;

use crate::{
    batches::{batch, id, list},
    client::Request,
    ledgers::{CIRCUIT, Ledger, OTHER_SERVICE, SERVICE, authorized, scabbard, service_path},
};

const SECOND: Duration = Duration::from_secs(1);

/// A service that is gsAA at alpha and gsPP at beta.
struct Circuit {
    alpha: Ledger,
    beta: LedgerSim,
}

const PEER: &str = "gsPP";

fn circuit(configure: impl Fn(LedgerSimBuilder) -> LedgerSimBuilder) -> Circuit {
    let alpha = scabbard(|builder| configure(builder.valid_for(SECOND)));
    let [own, peer] = [SERVICE, PEER].map(scope);
    let beta = LedgerSim::scabbard([peer.clone()]).clock(alpha.clock.clone());
    let beta = configure(beta.valid_for(SECOND)).join_circuit_of(&alpha, [(own, peer)]);
    Circuit { beta: beta.start().unwrap(), alpha }
}

fn scope(service: &str) -> ServiceScopeId {
    format!("{CIRCUIT}::{service}").parse().unwrap()
}

impl Circuit {
    fn submit(&self, batches: &[Batch]) {
        assert_eq!(self.alpha.submit(batches).status(), 202);
    }

    fn submit_to_beta(&self, batch: &Batch) {
        let request = authorized(Request::post(service_path(PEER, "batches")));
        let request = request.body(list(std::slice::from_ref(batch)));
        assert_eq!(request.send(self.beta.address()).unwrap().status(), 202);
    }

    /// The statuses of a batch at alpha and at beta.
    fn statuses(&self, batch: &Batch) -> [String; 2] {
        [(&self.alpha.sim, SERVICE), (&self.beta, PEER)].map(|(node, service)| {
            let path = format!("batch_statuses?ids={}", batch.header_signature);
            let json = get(node, service, &path).json();
            json[0]["status"]["statusType"].as_str().unwrap().to_owned()
        })
    }

    fn roots(&self) -> [String; 2] {
        [(&self.alpha.sim, SERVICE), (&self.beta, PEER)].map(|(node, service)| {
            get(node, service, "state_root").json().as_str().unwrap().to_owned()
        })
    }

    /// The batches that each node has applied, in order.
    fn applied(&self) -> [Vec<u32>; 2] {
        [self.alpha.record(), self.beta.record()].map(|record| {
            let number = |entry: &Entry| {
                (0..10).find(|number| id(&batch(*number)) == entry.batch_id).unwrap()
            };
            record.iter().map(number).collect()
        })
    }

    fn assert_broken(&self) {
        let [alpha, beta] = self.roots();
        assert_ne!(alpha, beta);
        self.submit(&[batch(8), batch(9)]);
        assert_eq!([8, 9].map(|n| self.alpha.status(&batch(n))), ["VALID", "PENDING"]);
        self.alpha.advance(60);
        assert_eq!([8, 9].map(|n| self.alpha.status(&batch(n))), ["VALID", "VALID"]);
        self.alpha.advance(60);
        assert!(self.applied().concat().iter().all(|number| *number < 8));
    }
}

fn get(node: &LedgerSim, service: &str, end: &str) -> crate::client::Response {
    authorized(Request::get(service_path(service, end))).send(node.address()).unwrap()
}

#[test]
fn batch_is_known_at_the_peer_from_valid_on() {
    let circuit = circuit(|builder| builder.pending_for(SECOND));
    circuit.submit(&[batch(1)]);
    assert_eq!(circuit.statuses(&batch(1)), ["Pending", "Unknown"]);
    circuit.alpha.advance(1);
    assert_eq!(circuit.statuses(&batch(1)), ["Valid", "Valid"]);
    circuit.alpha.advance(1);
    assert_eq!(circuit.statuses(&batch(1)), ["Committed", "Committed"]);
    assert_eq!(circuit.applied(), [[1], [1]]);
}

#[test]
fn invalid_batch_is_known_only_where_it_was_posted() {
    let circuit = circuit(|builder| builder.refuse(|_| Some("no such contract".to_owned())));
    circuit.submit(&[batch(1)]);
    assert_eq!(circuit.statuses(&batch(1)), ["Invalid", "Unknown"]);
    assert!(circuit.beta.record().is_empty());
}

#[test]
fn both_nodes_commit_all_batches_in_one_order() {
    let circuit = circuit(|builder| builder);
    circuit.submit(&[batch(1), batch(2)]);
    circuit.submit_to_beta(&batch(3));
    assert_eq!(circuit.statuses(&batch(3)), ["Unknown", "Pending"]);
    for _ in 0..10 {
        circuit.alpha.advance(1);
        circuit.applied();
    }
    let [alpha, beta] = circuit.applied();
    assert_eq!(alpha, beta);
    assert_eq!(alpha.len(), 3);
    let position = |number| alpha.iter().position(|other| *other == number);
    assert!(position(1) < position(2), "{alpha:?}");
}

#[test]
fn state_root_changes_with_every_commit_at_both_nodes() {
    let circuit = circuit(|builder| builder);
    let mut roots = vec![circuit.roots()];
    for number in [1, 2] {
        circuit.submit(&[batch(number)]);
        circuit.alpha.advance(1);
        circuit.applied();
        roots.push(circuit.roots());
    }
    assert!(roots.iter().all(|[alpha, beta]| alpha == beta && alpha.len() == 64), "{roots:?}");
    assert!(roots[0] != roots[1] && roots[1] != roots[2], "{roots:?}");
}

#[test]
fn each_node_has_only_its_own_service_id() {
    let circuit = circuit(|builder| builder);
    assert_eq!(get(&circuit.beta, SERVICE, "batch_statuses?ids=a").status(), 404);
    assert_eq!(get(&circuit.alpha, PEER, "batch_statuses?ids=a").status(), 404);
    assert_eq!(get(&circuit.alpha, OTHER_SERVICE, "batch_statuses?ids=a").status(), 200);
}

#[test]
fn restarted_node_forgets_what_its_peer_has_as_valid() {
    let circuit = circuit(|builder| builder);
    circuit.submit(&[batch(1), batch(2)]);
    circuit.alpha.kill();
    circuit.alpha.start_again();
    circuit.alpha.advance(100);
    assert_eq!(circuit.statuses(&batch(1)), ["Unknown", "Valid"]);
    assert_eq!(circuit.statuses(&batch(2)), ["Unknown", "Unknown"]);
    assert!(circuit.applied().concat().is_empty());

    circuit.submit(&[batch(1)]);
    circuit.alpha.advance(1);
    assert_eq!(circuit.statuses(&batch(1)), ["Committed", "Committed"]);
}

#[test]
fn leftover_proposal_fault_drops_the_batch_that_is_sent_again() {
    let circuit = circuit(|builder| builder.fault(Fault::LeftoverProposal, When::Always));
    circuit.submit(&[batch(1)]);
    circuit.alpha.kill();
    circuit.alpha.start_again();
    circuit.submit(&[batch(1), batch(2)]);
    circuit.alpha.advance(29);
    assert_eq!(circuit.statuses(&batch(1)), ["Valid", "Valid"]);
    assert_eq!(circuit.statuses(&batch(2)), ["Pending", "Unknown"]);
    circuit.alpha.advance(2);
    assert_eq!(circuit.applied(), [[2], [2]]);
    circuit.submit(&[batch(1)]);
    circuit.alpha.advance(1);
    assert_eq!(circuit.applied(), [[2, 1], [2, 1]]);
}

#[test]
fn batch_is_dropped_while_the_peer_is_down() {
    let circuit = circuit(|builder| builder);
    circuit.beta.kill();
    circuit.submit(&[batch(1), batch(2)]);
    circuit.alpha.advance(30);
    assert_eq!([1, 2].map(|n| circuit.alpha.status(&batch(n))), ["VALID", "PENDING"]);
    circuit.beta.start_again();
    circuit.alpha.advance(2);
    assert_eq!(circuit.statuses(&batch(1)), ["Valid", "Unknown"]);
    assert_eq!(circuit.applied(), [[2], [2]]);
}

#[test]
fn kill_of_the_peer_drops_the_batch_that_is_voted_on() {
    let circuit = circuit(|builder| builder);
    circuit.submit(&[batch(1), batch(2)]);
    circuit.beta.kill();
    circuit.beta.start_again();
    circuit.alpha.advance(40);
    assert_eq!(circuit.applied(), [[2], [2]]);
    assert_eq!(circuit.statuses(&batch(1)), ["Valid", "Unknown"]);
}

#[test]
fn second_execution_on_one_node_breaks_the_circuit() {
    let circuit = circuit(|builder| builder.sent_twice(SentTwice::StuckValid));
    circuit.submit(&[batch(1)]);
    circuit.alpha.advance(1);
    assert_eq!(circuit.statuses(&batch(1)), ["Committed", "Committed"]);
    circuit.submit(&[batch(1)]);
    assert_eq!(circuit.statuses(&batch(1)), ["Valid", "Committed"]);
    circuit.alpha.advance(30);
    assert_eq!(circuit.applied(), [vec![1, 1], vec![1]]);
    circuit.assert_broken();
}

#[test]
fn missed_commit_fault_breaks_the_circuit() {
    for is_alpha_killed in [false, true] {
        let circuit = circuit(|builder| builder);
        let killed = if is_alpha_killed { &*circuit.alpha } else { &circuit.beta };
        killed.inject(Fault::MissedCommit, When::Next(1));
        circuit.submit(&[batch(1)]);
        killed.kill();
        killed.start_again();
        circuit.alpha.advance(1);
        let (statuses, applied) = if is_alpha_killed {
            (["Unknown", "Committed"], [vec![], vec![1]])
        } else {
            (["Committed", "Unknown"], [vec![1], vec![]])
        };
        assert_eq!(circuit.applied(), applied);
        assert_eq!(circuit.statuses(&batch(1)), statuses);
        circuit.assert_broken();
    }
}

#[test]
fn node_that_is_gone_votes_no_more() {
    let Circuit { alpha, beta } = circuit(|builder| builder);
    drop(beta);
    alpha.submit(&[batch(1)]);
    alpha.advance(40);
    assert_eq!(alpha.status(&batch(1)), "VALID");
}

#[test]
fn circuit_of_an_unknown_service_cannot_be_joined() {
    let alpha = scabbard(|builder| builder);
    let peer = scope(PEER);
    let beta = LedgerSim::scabbard([peer.clone()]);
    let error = beta.join_circuit_of(&alpha, [(scope("gsZZ"), peer)]).start().unwrap_err();
    assert!(matches!(error, StartError::NoService(service) if service == scope("gsZZ")));
}
