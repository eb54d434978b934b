//! A simulated circuit of two nodes, and an adapter for it.

use std::{thread, time::Duration};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_core::{PeerService, ServiceScopeId};
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder};

use crate::{
    batches::{SERVICE, scope},
    test_ledger::{TestLedger, read_in_background},
};

const SECOND: Duration = Duration::from_secs(1);
pub const LOST: u32 = 1_000;
/// More than the replay shows.
pub const LONG: u32 = 65;
pub const HIGHER_ID: &str = "abcDE-F0123::gsBB";
pub const LOWER_ID: &str = "abcDE-F0123::gs00";

/// A circuit of two nodes. Batches are sent to alpha.
pub struct Circuit {
    pub ledger: TestLedger,
    pub peer: LedgerSim,
}

impl Circuit {
    /// Starts a circuit with this many committed batches. The service has the id `peer_id` at the other node. The
    /// events of both nodes are received.
    pub async fn start(peer_id: &str, count: u32) -> Self {
        let circuit = Self::start_without_events(peer_id, count).await;
        circuit.listen().await;
        circuit
    }

    /// The same, but no events are received.
    pub async fn start_without_events(peer_id: &str, count: u32) -> Self {
        let peer_id: ServiceScopeId = peer_id.parse().unwrap();
        let mut peer = None;
        let step = |ledger: LedgerSimBuilder| ledger.pending_for(SECOND).valid_for(SECOND);
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
        circuit
    }

    async fn commit(&self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert_eq!(self.ledger.send(number).await, Outcome::Accepted);
            self.advance_until_committed(number).await;
        }
    }

    pub async fn advance_until_committed(&self, number: u32) {
        while self.ledger.status(number).await != LedgerStatus::Committed {
            self.ledger.advance(1);
        }
    }

    /// Waits until the events of the peer are received, then subscribes to those of the node.
    async fn listen(&self) {
        drop(self.ledger.subscribe().await);
        for number in 2_000.. {
            self.ledger.send_with_fault(Fault::ResetBefore, number).await;
            let detail = self.ledger.report(number).await.detail.unwrap_or_default();
            if detail.contains("events of another node were received") {
                break;
            }
        }
        self.subscribe().await;
    }

    pub async fn subscribe(&self) {
        read_in_background(self.ledger.subscribe().await);
    }

    /// Kills the node that batches are sent to, and starts it again.
    pub async fn restart_node(&self) {
        kill(&self.ledger.sim);
        assert!(self.ledger.scabbard.events(SERVICE).await.is_err());
        start_again(&self.ledger.sim);
        self.subscribe().await;
    }

    pub async fn detail(&self, number: u32) -> String {
        self.ledger.report(number).await.detail.unwrap()
    }

    /// Sends the batch again, and checks that it is then committed once.
    pub async fn assert_committed_by_attempt(&self, number: u32, attempt: u32) {
        let before = self.ledger.applied_count();
        assert_eq!(self.ledger.send_again(number, attempt).await, Outcome::Accepted);
        self.advance_until_committed(number).await;
        assert_eq!(self.ledger.applied_count(), before + 1);
        assert_eq!(self.peer.record().len(), before + 1);
    }
}

/// Kills a node. The simulator waits for its own runtime, which is not allowed on the test's runtime.
pub fn kill(node: &LedgerSim) {
    thread::scope(|scope| scope.spawn(|| node.kill()).join().unwrap());
}

pub fn start_again(node: &LedgerSim) {
    thread::scope(|scope| scope.spawn(|| node.start_again()).join().unwrap());
}
