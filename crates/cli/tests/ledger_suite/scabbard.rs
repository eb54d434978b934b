use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use grid_batch_core::{ItemId, LedgerFacts, ServiceScopeId};
use grid_batch_ledger_sim::{Fault as SimFault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_ledger_tests::{
    BatchKind, Fault, Harness, LATE_ARRIVAL_LIMIT, NotPossible, TestBatch, ledger_tests,
};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::http::{request, send};
use tempfile::TempDir;

use crate::simulated::{SimulatedNode, TestBatches, test_batch};

ledger_tests!(Scabbard::new(), not_run: [
    "second_arrival",
    "pipeline",
    "parallel",
    "second_node_lags",
    "deadline_passes_before_sending",
    "deadline_passes_before_applying",
    "committed_before_its_deadline",
]);

const SERVICE: &str = "test-00000::s0000";
const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(800);

struct Scabbard {
    node: SimulatedNode,
    batches: TestBatches,
    /// A node of another ledger, and whether it is configured.
    other: Option<(LedgerSim, bool)>,
    database: Option<TestDatabase>,
    /// Where the key of the server is.
    directory: TempDir,
}

impl Scabbard {
    fn new() -> Self {
        let batches = TestBatches::new(SERVICE);
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
        Self {
            node: SimulatedNode::start(batches.with_invalid(builder())),
            batches,
            other: None,
            database: None,
            directory,
        }
    }

    /// Sends a batch as another client does, and waits until it is executed.
    fn send(&self, batch: &TestBatch) {
        let executed = self.node.ledger.record().len();
        let (circuit, service) = SERVICE.split_once("::").unwrap();
        let token = CylinderToken::new(&SigningKey::from_seed(9));
        let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
        let path = format!("/scabbard/{circuit}/{service}/batches");
        let request = request("POST", &path, &[&authorization], &batch.bytes);
        assert_eq!(send(self.node.ledger.address(), &request).unwrap().status, 202);
        self.node.wait_for_execution_after(executed);
    }
}

fn builder() -> LedgerSimBuilder {
    let service: ServiceScopeId = SERVICE.parse().unwrap();
    LedgerSim::scabbard([service]).coordinator_timeout(COORDINATOR_TIMEOUT)
}

impl Harness for Scabbard {
    fn facts(&self) -> LedgerFacts {
        grid_batch_scabbard::facts(LATE_ARRIVAL_LIMIT)
    }

    fn server(&self, configuration: &Path) -> Command {
        crate::serve(configuration)
    }

    fn configuration(&self) -> String {
        let (name, url) = match &self.other {
            Some((other, true)) => ("other", other.url()),
            _ => ("test", self.node.ledger.url()),
        };
        let key = self.directory.path().join("key");
        format!(
            "[ledger]\nkind = \"scabbard\"\nname = \"{name}\"\nurls = [\"{url}\"]\nkey_file = \"{}\"\n\
             coordinator_timeout = \"{}ms\"\n{}",
            key.display(),
            COORDINATOR_TIMEOUT.as_millis(),
            crate::EVENTS
        )
    }

    fn service(&self) -> Option<String> {
        Some(SERVICE.to_owned())
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        if kind == BatchKind::AppliedForAnother {
            let theirs = test_batch(&self.batches.for_another());
            self.send(&theirs);
        }
        self.batches.next(kind).map(|batch| test_batch(&batch))
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        let ledger = &self.node.ledger;
        match fault {
            Fault::Refuses => ledger.inject(SimFault::Unauthorized, When::Always),
            Fault::SendsNoEvents => {
                ledger.inject(SimFault::LateEvents(Duration::from_hours(1)), When::Always);
            }
            Fault::OtherLedger => self.other = Some((builder().start().unwrap(), true)),
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
