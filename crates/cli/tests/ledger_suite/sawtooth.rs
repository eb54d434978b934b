use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{ItemId, LedgerFacts};
use grid_batch_ledger_sim::{Fault as SimFault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_ledger_tests::{
    BatchKind, CaseResult, Fault, Harness, LATE_ARRIVAL_LIMIT, NotPossible, TestBatch,
    ledger_tests, run_case,
};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::http::{request, send};

use crate::simulated::{SimulatedNode, TestBatches, test_batch};

ledger_tests!(Sawtooth::new(), not_run: [
    "pipeline",
    "deadline_passes_before_sending",
    "deadline_passes_before_applying",
    "committed_before_its_deadline",
]);

#[test]
fn order_of_one_publishing_node() {
    let report = run_case("pipeline", &mut Sawtooth::with(true));
    assert_eq!(report.rows[0].result, CaseResult::Passed);
}

/// Much longer than a batch takes.
const LAG: Duration = Duration::from_secs(1);

struct Sawtooth {
    node: SimulatedNode,
    batches: TestBatches,
    /// The batches of nodes that lag, in order. Each is invalid at a node that has not applied the one before it.
    in_order: Arc<Mutex<Vec<ItemId>>>,
    second: Option<LedgerSim>,
    /// Whether the node keeps the order of arrival.
    keeps_order: bool,
    /// A node of another ledger, and whether it is configured.
    other: Option<(LedgerSim, bool)>,
    database: Option<TestDatabase>,
}

impl Sawtooth {
    fn new() -> Self {
        Self::with(false)
    }

    /// With `keeps_order`, a network with one node that publishes blocks.
    fn with(keeps_order: bool) -> Self {
        let (batches, in_order) = (TestBatches::new("global"), Arc::default());
        let builder = executing(&batches, &in_order);
        Self {
            node: SimulatedNode::start(if keeps_order { builder.keeps_order() } else { builder }),
            keeps_order,
            batches,
            in_order,
            second: None,
            other: None,
            database: None,
        }
    }

    /// Sends a batch as another client does, and waits until it is executed, unless the node has it already.
    fn send(&self, batch: &TestBatch) {
        let record = self.node.ledger.record();
        let headers = ["content-type: application/octet-stream"];
        let request = request("POST", "/batches", &headers, &batch.bytes);
        assert_eq!(send(self.node.ledger.address(), &request).unwrap().status, 202);
        if record.iter().all(|entry| entry.batch_id != batch.id) {
            self.node.wait_for_execution_after(record.len());
        }
    }
}

/// A node of the ledger.
fn executing(batches: &TestBatches, in_order: &Arc<Mutex<Vec<ItemId>>>) -> LedgerSimBuilder {
    let in_order = Arc::clone(in_order);
    batches.with_invalid(LedgerSim::sawtooth()).execute_after(move |batch| {
        let in_order = in_order.lock().unwrap();
        let position = in_order.iter().position(|id| *id == batch.id())?;
        in_order.get(position.checked_sub(1)?).copied()
    })
}

impl Harness for Sawtooth {
    fn facts(&self) -> LedgerFacts {
        grid_batch_sawtooth::facts(self.keeps_order, LATE_ARRIVAL_LIMIT)
    }

    fn server(&self, configuration: &Path) -> Command {
        crate::serve(configuration)
    }

    fn configuration(&self) -> String {
        let mut urls = vec![self.node.ledger.url()];
        urls.extend(self.second.as_ref().map(LedgerSim::url));
        if let Some((other, true)) = &self.other {
            urls = vec![other.url()];
        }
        let Self { keeps_order, .. } = self;
        format!(
            "[ledger]\nkind = \"sawtooth\"\nurls = {urls:?}\nkeeps_order = {keeps_order}\n{}",
            crate::EVENTS
        )
    }

    fn service(&self) -> Option<String> {
        None
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        if kind == BatchKind::AppliedForAnother {
            let theirs = test_batch(&self.batches.for_another());
            self.send(&theirs);
        }
        let batch = self.batches.next(kind)?;
        if self.second.is_some() {
            self.in_order.lock().unwrap().push(batch.batch_id);
        }
        Ok(test_batch(&batch))
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        match fault {
            Fault::Refuses => {
                self.node.ledger.inject(SimFault::OtherServer { status: 403 }, When::Always);
            }
            Fault::SendsNoEvents => self.node.ledger.stop_sending_events(),
            Fault::SecondNodeLags => {
                let second = executing(&self.batches, &self.in_order);
                let second = second.join_chain_of(&self.node.ledger, LAG);
                self.second = Some(second.start().unwrap());
            }
            Fault::OtherLedger => {
                self.other = Some((LedgerSim::sawtooth().start().unwrap(), true));
            }
            fault => self.node.fault(fault)?,
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.node.heal();
        if let Some((_, is_configured)) = &mut self.other {
            *is_configured = false;
        }
    }

    fn applied(&self) -> Vec<ItemId> {
        let other = self.other.as_ref().map(|(other, _)| other);
        self.batches.applied([&self.node.ledger].into_iter().chain(other))
    }

    fn arrivals(&self) -> usize {
        self.node.arrivals()
    }

    fn release(&mut self) -> Result<(), NotPossible> {
        self.node.ledger.deliver_late();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), NotPossible> {
        self.node.ledger.restart();
        Ok(())
    }

    fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        self.send(batch);
        Ok(())
    }

    fn postgres(&mut self) -> Result<String, NotPossible> {
        Ok(self.database.get_or_insert_with(TestDatabase::create).url().to_owned())
    }
}
