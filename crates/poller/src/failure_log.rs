use std::collections::HashMap;

use grid_batch_core::BatchError;
use log::{info, warn};

/// Logs once when an operation begins to fail for a service, and once when it succeeds again.
#[derive(Debug)]
pub(crate) struct FailureLog {
    operation: &'static str,
    failures: HashMap<String, u64>,
}

/// Limit on the number of services that are remembered. If a service is forgotten, its failure is logged again.
const MAX_SERVICES: usize = 100_000;

impl FailureLog {
    /// A log for this operation, whose name is a plural.
    pub(crate) fn of(operation: &'static str) -> Self {
        Self { operation, failures: HashMap::new() }
    }

    pub(crate) fn failed(&mut self, service: &str, error: &BatchError) {
        if let Some(failures) = self.failures.get_mut(service) {
            *failures += 1;
            return;
        }
        if self.failures.len() >= MAX_SERVICES {
            self.failures.clear();
        }
        self.failures.insert(service.to_owned(), 1);
        warn!(service = service, error:% = error; "{} fail", self.operation);
    }

    pub(crate) fn succeeded(&mut self, service: &str) {
        if let Some(failures) = self.failures.remove(service) {
            info!(service = service, failures = failures; "{} succeed again", self.operation);
        }
    }
}
