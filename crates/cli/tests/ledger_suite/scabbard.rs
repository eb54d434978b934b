//! Scabbard, with a simulated node.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_ledger_sim::{Fault as SimFault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_ledger_tests::{Fault, LATE_ARRIVAL_LIMIT, NotPossible, ledger_tests};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_test_support::http::request;
use tempfile::TempDir;

use crate::simulated::{SimulatedHarness, SimulatedLedger};

ledger_tests!(SimulatedHarness::start(Scabbard::new()), not_run: [
    "second_arrival",
    "pipeline",
    "parallel",
    "second_node_lags",
    "deadline_passes_before_sending",
    "deadline_passes_before_applying",
    "committed_before_its_deadline",
]);

const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(800);

/// A directory with the key of the server.
struct Scabbard(TempDir);

impl Scabbard {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
        Self(directory)
    }
}

impl SimulatedLedger for Scabbard {
    const SERVICE: &'static str = "test-00000::s0000";

    fn facts(&self) -> LedgerFacts {
        grid_batch_scabbard::facts(LATE_ARRIVAL_LIMIT)
    }

    fn builder(&self) -> LedgerSimBuilder {
        let service: ServiceScopeId = Self::SERVICE.parse().unwrap();
        LedgerSim::scabbard([service]).coordinator_timeout(COORDINATOR_TIMEOUT)
    }

    fn settings(&self, name: &str) -> String {
        format!(
            "kind = \"scabbard\"\nname = \"{name}\"\nkey_file = \"{}\"\ncoordinator_timeout = \"{}ms\"",
            self.0.path().join("key").display(),
            COORDINATOR_TIMEOUT.as_millis(),
        )
    }

    fn submission(&self, bytes: &[u8]) -> Vec<u8> {
        let (circuit, service) = Self::SERVICE.split_once("::").unwrap();
        let token = CylinderToken::new(&SigningKey::from_seed(9));
        let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
        request("POST", &format!("/scabbard/{circuit}/{service}/batches"), &[&authorization], bytes)
    }

    fn fault(&mut self, node: &LedgerSim, fault: Fault) -> Result<(), NotPossible> {
        match fault {
            Fault::Refuses => node.inject(SimFault::Unauthorized, When::Always),
            _ => return Err(NotPossible::new("a service is at one node")),
        }
        Ok(())
    }
}
