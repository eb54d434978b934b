//! `mockall` mocks of the traits, for tests of the layers above.

use grid_batch_core::batches::{DeclaredAccess, StoredBatch};
use grid_batch_core::queue::TakenBatch;
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use mockall::mock;

use crate::{Dependency, OpenBatchStore};

// An argument has a reference inside of another type, whose lifetime `automock` needs to have a name.
mock! {
    pub OpenBatchStore {}
    impl OpenBatchStore for OpenBatchStore {
        fn services<'a>(&self, after: Option<&'a ServiceId>, limit: usize)
            -> BatchResult<Vec<ServiceId>>;
        fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>>;
        fn declared_access(&self, batch: &StoredBatch) -> BatchResult<DeclaredAccess>;
        fn dependency(&self, transaction_id: &ItemId) -> BatchResult<Dependency>;
        fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize>;
        fn end_as_invalid(&self, batch: &StoredBatch, transaction_id: &ItemId) -> BatchResult<bool>;
        fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>>;
        fn unmark(&self, batches: &[TakenBatch]) -> BatchResult<()>;
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::Timestamp;
    use grid_batch_core::queue::RoundStore;

    use super::*;
    use crate::StrategyRoundStore;

    #[test]
    fn mocked_store_has_a_service_with_a_batch() {
        let service: ServiceId = "a::b".parse().unwrap();
        let batch = StoredBatch::new(
            service.clone(),
            ItemId::from_bytes([1; 64]),
            Timestamp::from_micros(1),
        );
        let mut store = MockOpenBatchStore::new();
        let services = vec![service.clone()];
        store.expect_services().returning(move |_, _| Ok(services.clone()));
        store.expect_open_batches().returning(move |_, _| Ok(vec![batch.clone()]));
        store.expect_declared_access().returning(|_| Ok(DeclaredAccess::everything()));
        store.expect_batch_length().return_once(|_| Ok(5));
        assert_eq!(StrategyRoundStore::new(store).ready_services(None, 9), Ok(vec![service]));
    }
}
