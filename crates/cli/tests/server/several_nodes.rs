//! Several nodes of one Sawtooth chain, of which some apply blocks later than others.

use std::{collections::HashMap, time::Duration};

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// Much longer than a batch takes.
const LAG: Duration = Duration::from_secs(3);

/// A chain on which each of these batches reads what the one before it wrote.
struct Chain {
    harness: BatchHarness,
    followers: Vec<LedgerSim>,
    batches: Vec<SignedBatch>,
}

impl Chain {
    fn new(followers: usize, batches: usize) -> Self {
        let batches = signed_batches(&["global".to_owned()], batches);
        let configure = |builder: LedgerSimBuilder| in_order(builder, &batches);
        let harness = BatchHarness::sawtooth_with(configure);
        let follow = |_| {
            let builder = LedgerSim::sawtooth().join_chain_of(&harness.ledger, LAG);
            configure(builder).start().unwrap()
        };
        let followers = (0..followers).map(follow).collect();
        Self { harness, followers, batches }
    }

    /// A server with these nodes.
    fn serve(&self, nodes: &[&LedgerSim]) -> BatchServer {
        let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
        self.harness.serve_with(&[("--ledger-urls", &urls.join(","))])
    }

    /// Waits until all batches have ended, none of them invalid.
    fn wait_until_all_committed(&self) {
        let store = self.harness.store();
        let count = |state| count_in_state(&store, state);
        wait_until("all batches are committed, or one is invalid", || {
            count(BatchState::Committed) == self.batches.len() || count(BatchState::Invalid) > 0
        });
        assert_eq!(count(BatchState::Invalid), 0);
        self.harness.wait_until_all_committed(&self.batches);
    }
}

/// Makes each batch invalid at a node that has not applied the one before it.
fn in_order(builder: LedgerSimBuilder, batches: &[SignedBatch]) -> LedgerSimBuilder {
    let before = batches.windows(2).map(|pair| (pair[1].batch_id, pair[0].batch_id));
    let before: HashMap<_, _> = before.collect();
    builder.execute_after(move |batch| before.get(&batch.id()).copied())
}

/// The first node that could replace it has not applied the last batch.
#[test]
fn failed_node_is_replaced_by_one_that_has_the_batch_before() {
    let mut chain = Chain::new(2, 3);
    let failing = chain.followers.remove(0);
    let server = chain.serve(&[&failing, &chain.followers[0], &chain.harness.ledger]);
    let store = chain.harness.store();
    server.submit(&chain.batches[..1]);
    wait_until("the first batch is committed", || {
        count_in_state(&store, BatchState::Committed) == 1
    });
    drop(failing);
    server.submit(&chain.batches[1..]);
    chain.wait_until_all_committed();
    server.stop();
}

#[test]
fn restarted_server_asks_a_node_before_it_sends() {
    let chain = Chain::new(1, 2);
    let (ahead, behind) = (&chain.harness.ledger, &chain.followers[0]);
    let server = chain.serve(&[ahead, behind]);
    server.submit(&chain.batches[..1]);
    chain.harness.wait_until_all_committed(&chain.batches[..1]);
    server.stop();

    let server = chain.serve(&[behind, ahead]);
    server.submit(&chain.batches[1..]);
    chain.wait_until_all_committed();
    assert_eq!(behind.times_received(&chain.batches[1].batch_id), 0);
    server.stop();
}
