use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_core::{ScopeId, ServiceId};
use log::info;

use crate::{memory::Memory, scope::AccountScopeId};

/// Logs why the pools of services are parked: each reason once, rather than at every attempt.
#[derive(Debug, Default)]
pub(crate) struct ParkedLog(Memory<(ServiceId, String), Option<String>>);

impl ParkedLog {
    pub(crate) fn record(&self, scope: &AccountScopeId, pool: &str, answer: &SubmissionAnswer) {
        let reason = answer.message.as_deref().unwrap_or_default();
        if self.is_new(scope.service_id(), pool, answer.outcome, reason) {
            info!(service:% = scope, pool, reason = reason; "transactions are parked");
        }
    }

    fn is_new(&self, service: &ServiceId, pool: &str, outcome: Outcome, reason: &str) -> bool {
        let reason = outcome.is_parked().then(|| without_numbers(reason));
        self.0.changes(&(service.clone(), pool.to_owned()), reason) && outcome.is_parked()
    }
}

/// The reason without its numbers, so that a changing gas price counts as the same reason.
fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_logged_once_whatever_its_numbers() {
        let parked = ParkedLog::default();
        let service: ServiceId = "eip155:1:0xaa".parse().unwrap();
        let is_new = |reason: &str| parked.is_new(&service, "0xpool", Outcome::Parked, reason);
        assert!(is_new("the gas price is 201.5 gwei"));
        assert!(!is_new("the gas price is 320 gwei"));
        assert!(is_new("the account has too little"));
        assert!(is_new("the gas price is 201.5 gwei"));
    }

    #[test]
    fn reason_is_logged_again_after_another_outcome() {
        let parked = ParkedLog::default();
        let service: ServiceId = "eip155:1:0xaa".parse().unwrap();
        for _ in 0..2 {
            assert!(parked.is_new(&service, "0xpool", Outcome::Parked, "the gas price"));
            assert!(!parked.is_new(&service, "0xpool", Outcome::Accepted, ""));
        }
    }

    #[test]
    fn reason_of_a_pool_is_logged_once_while_another_one_pays() {
        let parked = ParkedLog::default();
        let service: ServiceId = "eip155:1:0xaa".parse().unwrap();
        assert!(parked.is_new(&service, "0xa", Outcome::PoolParked, "the gas price"));
        assert!(!parked.is_new(&service, "0xb", Outcome::Accepted, ""));
        assert!(!parked.is_new(&service, "0xa", Outcome::PoolParked, "the gas price"));
    }
}
