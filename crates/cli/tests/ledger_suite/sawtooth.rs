//! Sawtooth, with a simulated node.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_ledger_sim::{Fault as SimFault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_ledger_tests::{
    CaseResult, Fault, LATE_ARRIVAL_LIMIT, NotPossible, ledger_tests, run_case,
};
use grid_batch_test_support::http::request;

use crate::simulated::{SimulatedHarness, SimulatedLedger};

ledger_tests!(SimulatedHarness::start(Sawtooth::default()), not_run: [
    "pipeline",
    "deadline_passes_before_sending",
    "deadline_passes_before_applying",
    "committed_before_its_deadline",
]);

#[test]
fn order_of_one_publishing_node() {
    let ledger = Sawtooth { keeps_order: true, ..Sawtooth::default() };
    let report = run_case("pipeline", &mut SimulatedHarness::start(ledger));
    assert_eq!(report.rows[0].result, CaseResult::Passed);
}

/// Much longer than a batch takes.
const LAG: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Sawtooth {
    /// Whether it is a network with one node that publishes blocks.
    keeps_order: bool,
    second: Option<LedgerSim>,
    /// The batches of nodes that lag, in order. Each is invalid at a node that has not applied the one before it.
    in_order: Arc<Mutex<Vec<ItemId>>>,
}

impl SimulatedLedger for Sawtooth {
    const SERVICE: &'static str = "global";

    fn facts(&self) -> LedgerFacts {
        grid_batch_sawtooth::facts(self.keeps_order, LATE_ARRIVAL_LIMIT)
    }

    fn builder(&self) -> LedgerSimBuilder {
        let in_order = Arc::clone(&self.in_order);
        let builder = LedgerSim::sawtooth().execute_after(move |batch| {
            let in_order = in_order.lock().unwrap();
            let position = in_order.iter().position(|id| *id == batch.id())?;
            in_order.get(position.checked_sub(1)?).copied()
        });
        if self.keeps_order { builder.keeps_order() } else { builder }
    }

    /// Its nodes tell its name.
    fn settings(&self, _name: &str) -> String {
        format!("kind = \"sawtooth\"\nkeeps_order = {}", self.keeps_order)
    }

    fn submission(&self, bytes: &[u8]) -> Vec<u8> {
        request("POST", "/batches", &["content-type: application/octet-stream"], bytes)
    }

    fn fault(&mut self, node: &LedgerSim, fault: Fault) -> Result<(), NotPossible> {
        match fault {
            Fault::Refuses => node.inject(SimFault::OtherServer { status: 403 }, When::Always),
            _ => self.second = Some(self.builder().join_chain_of(node, LAG).start().unwrap()),
        }
        Ok(())
    }

    fn second_node(&self) -> Option<&LedgerSim> {
        self.second.as_ref()
    }

    fn made(&mut self, batch: ItemId) {
        if self.second.is_some() {
            self.in_order.lock().unwrap().push(batch);
        }
    }
}
