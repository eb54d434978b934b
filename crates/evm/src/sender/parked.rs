use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use grid_batch_core::{Outcome, ScopeId, ServiceId, SubmissionAnswer};
use log::info;

use crate::AccountScopeId;

/// Why services are parked, so that each reason is logged once, and not at every look.
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<HashMap<ServiceId, String>>);

impl Parked {
    /// So many are remembered; then all are forgotten, and told once more.
    const MOST: usize = 1_000;

    pub(crate) fn note(&self, scope: &AccountScopeId, answer: &SubmissionAnswer) {
        let reason = answer.message.as_deref().unwrap_or_default();
        if self.is_news(scope.service_id(), answer.outcome, reason) {
            info!(service:% = scope, reason = reason; "withdrawals are parked");
        }
    }

    fn is_news(&self, service_id: &ServiceId, outcome: Outcome, reason: &str) -> bool {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome != Outcome::Parked {
            parked.remove(service_id);
            return false;
        }
        if parked.len() >= Self::MOST && !parked.contains_key(service_id) {
            parked.clear();
        }
        let reason = without_numbers(reason);
        parked.insert(service_id.clone(), reason.clone()) != Some(reason)
    }
}

/// A price that goes up and down is one reason.
fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_news_once_whatever_its_numbers() {
        let parked = Parked::default();
        let service: ServiceId = "eip155:1:0xaa".parse().unwrap();
        let is_news = |reason: &str| parked.is_news(&service, Outcome::Parked, reason);
        assert!(is_news("the gas price is 201.5 gwei"));
        assert!(!is_news("the gas price is 320 gwei"));
        assert!(is_news("the account has too little"));
        assert!(is_news("the gas price is 201.5 gwei"));
    }

    #[test]
    fn a_reason_is_news_again_when_something_was_sent_meanwhile() {
        let parked = Parked::default();
        let service: ServiceId = "eip155:1:0xaa".parse().unwrap();
        for _ in 0..2 {
            assert!(parked.is_news(&service, Outcome::Parked, "the gas price"));
            assert!(!parked.is_news(&service, Outcome::Accepted, ""));
        }
    }

    #[test]
    fn only_so_many_are_remembered() {
        let parked = Parked::default();
        for number in 0..=Parked::MOST {
            let service: ServiceId = format!("eip155:1:{number}").parse().unwrap();
            assert!(parked.is_news(&service, Outcome::Parked, "the gas price"));
            assert!(parked.0.lock().unwrap().len() <= Parked::MOST);
        }
    }
}
