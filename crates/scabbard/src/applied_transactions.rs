use std::sync::Mutex;

use grid_batch_core::{ItemId, ServiceId};
use grid_batch_support::{BoundedMap, lock};

/// The latest transactions of all services that are known from events or statuses to be applied.
pub(crate) struct AppliedTransactions(Mutex<Heard>);

struct Heard {
    /// The number of observations.
    observations: u64,
    transactions: BoundedMap<(ServiceId, ItemId), AppliedTransaction>,
}

/// A transaction that is known to be applied.
#[derive(Default)]
struct AppliedTransaction {
    /// The first event that named it. `None`: it is known from the status of a committed batch.
    event_at: Option<ObservationCount>,
}

/// A position in the order of observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObservationCount(u64);

impl AppliedTransactions {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        let transactions = BoundedMap::new(Self::LIMIT);
        Self(Mutex::new(Heard { observations: 0, transactions }))
    }

    /// The present count. Later events have a greater one.
    pub(crate) fn observation_count(&self) -> ObservationCount {
        ObservationCount(lock(&self.0).observations)
    }

    /// Records an event, which does not say with which batch the transaction was applied. Returns whether it is the
    /// first event of the transaction.
    pub(crate) fn add_event(&self, service: &ServiceId, transaction: ItemId) -> bool {
        let mut heard = lock(&self.0);
        heard.observations += 1;
        let now = ObservationCount(heard.observations);
        let key = (service.clone(), transaction);
        let applied = heard.transactions.get_or_insert_with(&key, AppliedTransaction::default);
        let is_first = applied.event_at.is_none();
        applied.event_at.get_or_insert(now);
        is_first
    }

    /// Records the transactions of a committed batch. They prove nothing about another batch.
    pub(crate) fn add_committed(&self, service: &ServiceId, transactions: &[ItemId]) {
        let mut heard = lock(&self.0);
        for transaction in transactions {
            let key = (service.clone(), *transaction);
            heard.transactions.get_or_insert_with(&key, AppliedTransaction::default);
        }
    }

    /// How many of these transactions are known to be applied, with any batch.
    pub(crate) fn count(&self, service: &ServiceId, transactions: &[ItemId]) -> usize {
        let heard = lock(&self.0);
        transactions.iter().filter(|id| heard.get(service, id).is_some()).count()
    }

    /// Whether an event after this moment was the first to name the transaction. Without a moment, whether any event
    /// named it.
    pub(crate) fn has_event(
        &self,
        service: &ServiceId,
        transaction: &ItemId,
        after: Option<ObservationCount>,
    ) -> bool {
        let heard = lock(&self.0);
        let first_event = heard.get(service, transaction).and_then(|applied| applied.event_at);
        first_event.is_some_and(|at| after.is_none_or(|after| at > after))
    }
}

impl Heard {
    fn get(&self, service: &ServiceId, transaction: &ItemId) -> Option<&AppliedTransaction> {
        self.transactions.get(&(service.clone(), *transaction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ItemId = ItemId::from_bytes([1; 64]);
    const TWO: ItemId = ItemId::from_bytes([2; 64]);

    fn services() -> [ServiceId; 2] {
        ["a::b", "a::c"].map(|id| id.parse().unwrap())
    }

    #[test]
    fn transaction_is_applied_at_its_service_only() {
        let [service, other_service] = services();
        let applied = AppliedTransactions::new();
        applied.add_event(&service, ONE);
        assert_eq!(applied.count(&service, &[TWO, ONE]), 1);
        assert_eq!(applied.count(&service, &[TWO]), 0);
        assert_eq!(applied.count(&other_service, &[ONE]), 0);
        assert!(!applied.has_event(&other_service, &ONE, None));
    }

    #[test]
    fn first_event_counts_even_if_it_is_repeated() {
        let [service, _] = services();
        let applied = AppliedTransactions::new();
        let before = applied.observation_count();
        applied.add_event(&service, ONE);
        let after = applied.observation_count();
        applied.add_event(&service, ONE);
        assert!(applied.has_event(&service, &ONE, None));
        assert!(applied.has_event(&service, &ONE, Some(before)));
        assert!(!applied.has_event(&service, &ONE, Some(after)));
    }

    #[test]
    fn status_of_a_batch_is_no_event() {
        let [service, _] = services();
        let applied = AppliedTransactions::new();
        applied.add_committed(&service, &[ONE]);
        assert_eq!(applied.count(&service, &[ONE]), 1);
        assert!(!applied.has_event(&service, &ONE, None));
        applied.add_event(&service, ONE);
        assert!(applied.has_event(&service, &ONE, None));
    }
}
