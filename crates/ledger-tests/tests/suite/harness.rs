use std::{env::current_exe, path::Path, process::Command};

use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_ledger_tests::{BatchKind, Fault, Harness, NotPossible, TestBatch};

use crate::{
    adapter::{FILE, VARIANT},
    node::Node,
    variant::Variant,
};

pub struct SmallLedger {
    variant: Variant,
    node: Node,
    /// A node of another ledger, and whether it is configured.
    other: Option<(Node, bool)>,
    batches: usize,
}

/// The height until which batches with a deadline can be applied.
const DEADLINE: u64 = 10;

impl SmallLedger {
    pub fn new(variant: Variant) -> Self {
        Self { variant, node: Node::start(variant, "this"), other: None, batches: 0 }
    }
}

impl Harness for SmallLedger {
    fn facts(&self) -> LedgerFacts {
        self.variant.facts()
    }

    fn server(&self, configuration: &Path) -> Command {
        let mut command = Command::new(current_exe().unwrap());
        command.args(["--exact", "server", "--ignored", "--nocapture"]);
        command.env(FILE, configuration).env(VARIANT, format!("{:?}", self.variant));
        command
    }

    fn configuration(&self) -> String {
        let (name, node) = match &self.other {
            Some((other, true)) => ("other", other),
            _ => ("this", &self.node),
        };
        let name = if self.variant.facts().tells_identity {
            String::new()
        } else {
            format!("name = \"{name}\"")
        };
        format!("[ledger]\nkind = \"small\"\nurls = [\"http://{}\"]\n{name}", node.address)
    }

    fn service(&self) -> Option<String> {
        Some("a::b".to_owned())
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        self.batches += 1;
        let id = format!("small.batch-{:08}", self.batches);
        let line = match kind {
            BatchKind::Valid => id.clone(),
            BatchKind::Invalid => format!("{id} invalid"),
            BatchKind::WithDeadline => format!("{id} until {DEADLINE}"),
            BatchKind::AppliedForAnother => {
                return Err(NotPossible::new("a batch is one transaction"));
            }
        };
        Ok(TestBatch { id: id.parse().unwrap(), bytes: line.into() })
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        match fault {
            Fault::SecondNodeLags => return Err(NotPossible::new("the ledger has one node")),
            Fault::SendsNoEvents => return Err(NotPossible::new("the ledger has no events")),
            Fault::OtherLedger => self.other = Some((Node::start(self.variant, "other"), true)),
            fault => self.node.fault(fault),
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
        let other = self.other.iter().flat_map(|(other, _)| other.applied());
        self.node.applied().into_iter().chain(other).map(|id| id.parse().unwrap()).collect()
    }

    fn arrivals(&self) -> usize {
        self.node.arrivals()
    }

    fn release(&mut self) -> Result<(), NotPossible> {
        self.node.release();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), NotPossible> {
        self.node.restart();
        Ok(())
    }

    fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        self.node.deliver(&String::from_utf8_lossy(&batch.bytes));
        Ok(())
    }

    fn pass_deadlines(&mut self) -> Result<(), NotPossible> {
        self.node.pass_height(DEADLINE);
        Ok(())
    }
}
