//! How long a batch waits when nodes of its circuit are killed repeatedly, and it is rejected because of a leftover
//! proposal when it is sent again.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_ledger_sim::{Fault, LedgerSim, When};

use crate::circuit::{Circuit, HIGHER_ID, LOST, LOWER_ID, kill, start_again};

/// The coordinator's timeout plus a tenth.
const PROPOSAL_LIMIT: u64 = 33;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    /// The node to which batches are sent.
    Node,
    Peer,
}

use Killed::{Node, Peer};

/// A node that is killed while this attempt is Valid, and for how many seconds.
type Kill = (u32, Killed, u64);

/// A batch of a circuit whose nodes are killed.
struct BatchUnderWay {
    circuit: Circuit,
    has_events: bool,
    seconds: u64,
}

impl BatchUnderWay {
    async fn start(peer_id: &str, has_events: bool) -> Self {
        let circuit = if has_events {
            Circuit::start(peer_id, 1).await
        } else {
            Circuit::start_without_events(peer_id, 1).await
        };
        circuit.ledger.sim.inject(Fault::LeftoverProposal, When::Always);
        Self { circuit, has_events, seconds: 0 }
    }

    fn advance(&mut self, seconds: u64) {
        self.circuit.ledger.advance(seconds);
        self.seconds += seconds;
    }

    async fn kill(&mut self, killed: Killed, seconds: u64) {
        // The batch is seen as Valid.
        self.circuit.ledger.evidence(LOST).await;
        kill(self.killed_node(killed));
        for _ in 0..seconds {
            // A node is asked repeatedly while it does not answer.
            let _ = self.circuit.ledger.try_report(LOST).await;
            self.advance(1);
        }
        start_again(self.killed_node(killed));
        // The tasks of kept connections notice that these are closed.
        tokio::task::yield_now().await;
        if self.has_events && killed == Node {
            self.circuit.subscribe().await;
        }
    }

    fn killed_node(&self, killed: Killed) -> &LedgerSim {
        match killed {
            Node => &self.circuit.ledger.sim,
            Peer => &self.circuit.peer,
        }
    }

    /// Sends the batch until it is committed. Returns how many seconds passed since the last killed node was
    /// started again.
    async fn send_until_committed(&mut self, kills: &[Kill]) -> u64 {
        let mut returned_at = 0;
        for attempt in 1.. {
            // The batch waits for the replay of events.
            while self.circuit.ledger.send_again(LOST, attempt).await == Outcome::Busy {
                self.advance(1);
            }
            self.advance(1);
            for (_, killed, seconds) in kills.iter().filter(|(at, ..)| *at == attempt) {
                self.kill(*killed, *seconds).await;
                returned_at = self.seconds;
            }
            if self.wait_until_committed_or_lost().await == Evidence::Committed {
                break;
            }
        }
        self.seconds - returned_at
    }

    /// Searches for evidence each second while the batch may be committed as usual, and then at the announced times.
    async fn wait_until_committed_or_lost(&mut self) -> Evidence {
        for seconds in 0.. {
            if self.circuit.ledger.status(LOST).await == LedgerStatus::Committed {
                return Evidence::Committed;
            }
            let report = self.circuit.ledger.report(LOST).await;
            if !matches!(report.evidence, Evidence::Present | Evidence::Inconclusive) {
                return report.evidence;
            }
            assert!(self.seconds < 1_000, "{:?}", report.detail);
            let provable_in = report.provable_in.filter(|_| seconds >= 3).unwrap_or_default();
            self.advance(provable_in.as_secs().max(1));
        }
        unreachable!()
    }
}

/// Orders of kills: the node twice, the node and the peer, and one of them for longer than the coordinator waits.
const ORDERS: [&[Kill]; 6] = [
    &[(1, Node, 45)],
    &[(1, Peer, 45)],
    &[(1, Node, 3), (1, Node, 3)],
    &[(1, Node, 3), (2, Node, 3)],
    &[(1, Node, 3), (2, Peer, 3)],
    &[(1, Peer, 3), (2, Node, 3)],
];

/// Asserts that the batch waits for the coordinator at most twice: after the last kill, and after the next attempt was
/// rejected.
async fn assert_bounded(orders: &[&[Kill]], has_events: bool) {
    for peer_id in [HIGHER_ID, LOWER_ID] {
        for kills in orders {
            let mut batch = BatchUnderWay::start(peer_id, has_events).await;
            let seconds = batch.send_until_committed(kills).await;
            println!("{peer_id}, {kills:?}: {seconds} s");
            // Committing a batch takes two seconds.
            assert!(seconds <= 2 * PROPOSAL_LIMIT + 4, "{peer_id}, {kills:?}: {seconds} s");
            assert_eq!(batch.circuit.ledger.applied_count(), 2, "{kills:?}");
        }
    }
}

#[tokio::test]
async fn kills_in_any_order_delay_a_batch_by_two_timeouts() {
    assert_bounded(&ORDERS, true).await;
}

#[tokio::test]
async fn kills_delay_a_batch_as_long_without_events() {
    assert_bounded(&ORDERS[3..], false).await;
}

/// When both nodes have forgotten the batch, neither reports that it was voted on.
#[tokio::test]
async fn kill_of_both_nodes_leaves_a_proposal_that_is_explained() {
    let batch = async |kills: &[Kill]| {
        let mut batch = BatchUnderWay::start(HIGHER_ID, true).await;
        batch.send_until_committed(kills).await
    };
    for kills in [[(1, Node, 0), (1, Peer, 0)], [(1, Peer, 0), (1, Node, 0)]] {
        let seconds = batch(&kills).await;
        assert!(seconds <= PROPOSAL_LIMIT + 5, "{kills:?}: {seconds} s");
    }
}
