use std::{
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{ItemId, LedgerFacts};
use grid_batch_ledger_sim::{Fault as SimFault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_ledger_tests::{
    BatchKind, Fault, Harness, LATE_ARRIVAL_LIMIT, NotPossible, TestBatch, ledger_tests,
};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_of_transactions},
    http::{request, send},
};

use crate::simulated::{SimulatedNode, test_batch};

ledger_tests!(Sawtooth::new());

/// Much longer than a batch takes.
const LAG: Duration = Duration::from_secs(1);

struct Sawtooth {
    node: SimulatedNode,
    rules: Arc<Mutex<Rules>>,
    second: Option<LedgerSim>,
    /// A node of another ledger, and whether it is configured.
    other: Option<(LedgerSim, bool)>,
    transactions: usize,
    /// What other clients have sent.
    of_others: Vec<ItemId>,
    database: Option<TestDatabase>,
}

/// Which batches the nodes find invalid.
#[derive(Default)]
struct Rules {
    invalid: Vec<ItemId>,
    /// Each of these batches is invalid at a node that has not applied the one before it.
    in_order: Option<Vec<ItemId>>,
}

impl Sawtooth {
    fn new() -> Self {
        let rules = Arc::new(Mutex::new(Rules::default()));
        Self {
            node: SimulatedNode::start(with_rules(LedgerSim::sawtooth(), &rules)),
            rules,
            second: None,
            other: None,
            transactions: 0,
            of_others: Vec::new(),
            database: None,
        }
    }

    /// A batch of so many new transactions, after one that was used before.
    fn signed(&mut self, repeated: usize, new: usize) -> SignedBatch {
        let first = self.transactions + 1 - repeated;
        self.transactions += new;
        batch_of_transactions("global", &Vec::from_iter(first..=self.transactions))
    }

    /// Sends a batch as another client does, and waits until it is executed, unless the node has it already.
    fn send(&self, batch: &TestBatch) {
        let executed = self.node.ledger.record().len();
        let is_new = !self.node.applied().contains(&batch.id);
        let headers = ["content-type: application/octet-stream"];
        let request = request("POST", "/batches", &headers, &batch.bytes);
        assert_eq!(send(self.node.ledger.address(), &request).unwrap().status, 202);
        if is_new {
            self.node.wait_for_execution_after(executed);
        }
    }
}

fn with_rules(builder: LedgerSimBuilder, rules: &Arc<Mutex<Rules>>) -> LedgerSimBuilder {
    let (invalid, order) = (Arc::clone(rules), Arc::clone(rules));
    builder
        .refuse(move |batch| {
            let is_invalid = invalid.lock().unwrap().invalid.contains(&batch.id());
            is_invalid.then(|| "it is invalid".to_owned())
        })
        .execute_after(move |batch| {
            let rules = order.lock().unwrap();
            let batches = rules.in_order.as_ref()?;
            let position = batches.iter().position(|id| *id == batch.id())?;
            batches.get(position.checked_sub(1)?).copied()
        })
}

impl Harness for Sawtooth {
    fn facts(&self) -> LedgerFacts {
        grid_batch_sawtooth::facts(false, LATE_ARRIVAL_LIMIT)
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
        format!("[ledger]\nkind = \"sawtooth\"\nurls = {urls:?}\n{}", crate::EVENTS)
    }

    fn service(&self) -> Option<String> {
        None
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        let batch = match kind {
            BatchKind::Valid | BatchKind::Invalid => self.signed(0, 1),
            BatchKind::AppliedForAnother => {
                let theirs = test_batch(&self.signed(0, 1));
                self.of_others.push(theirs.id);
                self.send(&theirs);
                self.signed(1, 1)
            }
            BatchKind::WithDeadline => return Err(NotPossible::new("batches do not expire")),
        };
        let mut rules = self.rules.lock().unwrap();
        if kind == BatchKind::Invalid {
            rules.invalid.push(batch.batch_id);
        }
        if let Some(batches) = &mut rules.in_order {
            batches.push(batch.batch_id);
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
                self.rules.lock().unwrap().in_order = Some(Vec::new());
                let second = with_rules(LedgerSim::sawtooth(), &self.rules);
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
        let mut applied = self.node.applied();
        applied.retain(|id| !self.of_others.contains(id));
        let other = self.other.iter().flat_map(|(other, _)| other.record());
        applied.extend(other.map(|entry| entry.batch_id));
        applied
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
