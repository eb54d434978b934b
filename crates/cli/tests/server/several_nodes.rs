//! Several nodes of one Sawtooth chain, of which some apply blocks later than others.

use std::{collections::HashMap, time::Duration};

use grid_batch_core::BatchState;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, count_in_state};

/// Much longer than a batch takes.
const LAG: Duration = Duration::from_millis(700);

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

    /// The URLs of all nodes, as a setting.
    fn urls(&self) -> String {
        let nodes = std::iter::once(&self.harness.ledger).chain(&self.followers);
        nodes.map(LedgerSim::url).collect::<Vec<_>>().join(",")
    }
}

/// Makes each batch invalid at a node that has not applied the one before it.
fn in_order(builder: LedgerSimBuilder, batches: &[SignedBatch]) -> LedgerSimBuilder {
    let before = batches.windows(2).map(|pair| (pair[1].batch_id, pair[0].batch_id));
    let before: HashMap<_, _> = before.collect();
    builder.execute_after(move |batch| before.get(&batch.id()).copied())
}

#[test]
fn batches_of_a_service_stay_with_one_node() {
    let chain = Chain::new(2, 6);
    let server = chain.harness.serve_with(&[("--ledger-urls", &chain.urls())]);
    server.submit(&chain.batches);
    let store = chain.harness.store();
    wait_until("all batches have ended", || {
        [BatchState::Committed, BatchState::Invalid]
            .map(|state| count_in_state(&store, state))
            .iter()
            .sum::<usize>()
            == chain.batches.len()
    });
    assert_eq!(count_in_state(&store, BatchState::Invalid), 0);
    server.stop();
}
