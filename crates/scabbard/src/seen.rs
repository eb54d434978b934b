use std::sync::{Mutex, MutexGuard, PoisonError};

use grid_batch_core::{HeaderId, ServiceId};

use crate::recent::Recent;

/// The transactions that a node said are applied, of all services: the last so many.
pub(crate) struct Seen(Mutex<Recent<(ServiceId, HeaderId), ()>>);

impl Seen {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(Self::LIMIT)))
    }

    pub(crate) fn add(&self, service: &ServiceId, transaction: HeaderId) {
        self.lock().entry(&(service.clone(), transaction), || ());
    }

    pub(crate) fn has_any(&self, service: &ServiceId, transactions: &[HeaderId]) -> bool {
        let seen = self.lock();
        transactions.iter().any(|id| seen.get(&(service.clone(), *id)).is_some())
    }

    fn lock(&self) -> MutexGuard<'_, Recent<(ServiceId, HeaderId), ()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_seen_at_its_service_only() {
        let [here, there]: [ServiceId; 2] = ["a::b", "a::c"].map(|id| id.parse().unwrap());
        let [one, other] = [1, 2].map(|n| HeaderId::from_bytes([n; 64]));
        let seen = Seen::new();
        seen.add(&here, one);
        assert!(seen.has_any(&here, &[other, one]));
        assert!(!seen.has_any(&here, &[other]) && !seen.has_any(&there, &[one]));
    }
}
