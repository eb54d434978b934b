use std::sync::{Mutex, MutexGuard, PoisonError};

use grid_batch_core::{HeaderId, ServiceId};

use crate::bounded_map::BoundedMap;

/// The latest transactions of all services that a node reported as applied.
pub(crate) struct AppliedTransactions(Mutex<BoundedMap<(ServiceId, HeaderId), ()>>);

impl AppliedTransactions {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    pub(crate) fn add(&self, service: &ServiceId, transaction: HeaderId) {
        self.lock().get_or_insert_with(&(service.clone(), transaction), || ());
    }

    pub(crate) fn contains_any(&self, service: &ServiceId, transactions: &[HeaderId]) -> bool {
        let applied = self.lock();
        transactions.iter().any(|id| applied.get(&(service.clone(), *id)).is_some())
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<(ServiceId, HeaderId), ()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_is_applied_at_its_service_only() {
        let [service, other_service]: [ServiceId; 2] =
            ["a::b", "a::c"].map(|id| id.parse().unwrap());
        let [applied_id, other_id] = [1, 2].map(|n| HeaderId::from_bytes([n; 64]));
        let applied = AppliedTransactions::new();
        applied.add(&service, applied_id);
        assert!(applied.contains_any(&service, &[other_id, applied_id]));
        assert!(
            !applied.contains_any(&service, &[other_id])
                && !applied.contains_any(&other_service, &[applied_id])
        );
    }
}
