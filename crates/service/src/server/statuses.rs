//! Statuses of batches, with what only this process knows: whether the in-flight window keeps them back.

use grid_batch_core::{
    Ahead, BatchDetails, BatchPage, BatchQueryStore, BatchResult, BatchSelection, BatchState,
    InstanceId, InstanceLease, ItemId, ItemIdPrefix, ListCursor, Obstacle, OwnedService, PageOrder,
    ServiceId, ServiceOverview, StoredBatch, Timestamp,
};
use grid_batch_queuer::Places;
use grid_batch_store::Store;

/// A store whose answers name the window, if services wait for a place in it. Batches of services that
/// another instance owns wait in the window of that one, which is not known here.
pub(super) struct Statuses {
    pub(super) store: Store,
    pub(super) window: Option<Places>,
}

impl Statuses {
    fn waits_for_window(&self, service_id: &ServiceId) -> bool {
        self.window.as_ref().is_some_and(|window| window.waits(service_id))
    }
}

fn in_flight_window() -> Ahead {
    let obstacle = Obstacle::InFlightWindow;
    Ahead { obstacle, head: None, head_waits: false, count: 0, more: false }
}

impl BatchQueryStore for Statuses {
    fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        BatchQueryStore::find(&self.store, batch_id)
    }

    fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<StoredBatch>> {
        BatchQueryStore::find_by_prefix(&self.store, prefix, service_id, limit)
    }

    fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        BatchQueryStore::find_by_transaction(&self.store, transaction_id)
    }

    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<BatchDetails>> {
        let mut details = BatchQueryStore::details(&self.store, service_id, batch_id)?;
        if let Some(details) = &mut details
            && details.batch.progress.state == BatchState::New
            && details.ahead.is_none()
            && self.waits_for_window(service_id)
        {
            details.ahead = Some(in_flight_window());
        }
        Ok(details)
    }

    fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<u8>>> {
        BatchQueryStore::serialized_batch(&self.store, service_id, batch_id)
    }

    /// The interface asks for batches that had no attempt.
    fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> BatchResult<Vec<Option<Ahead>>> {
        let ahead = BatchQueryStore::ahead(&self.store, service_id, created_at)?;
        match self.waits_for_window(service_id) {
            true => {
                Ok(ahead.into_iter().map(|it| it.or_else(|| Some(in_flight_window()))).collect())
            }
            false => Ok(ahead),
        }
    }

    fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        limit: usize,
    ) -> BatchResult<BatchPage> {
        BatchQueryStore::batch_page(&self.store, selection, order, after, limit)
    }

    fn services(
        &self,
        with_idle: bool,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceOverview>> {
        self.store.services(with_idle, after, limit)
    }

    fn service(&self, service_id: &ServiceId) -> BatchResult<Option<ServiceOverview>> {
        self.store.service(service_id)
    }

    fn instances(&self) -> BatchResult<Vec<InstanceLease>> {
        self.store.instances()
    }

    fn claims(
        &self,
        instance: Option<&InstanceId>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<OwnedService>> {
        self.store.claims(instance, after, limit)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grid_batch_core::{Admission, DeclaredAccess, ManualClock, NewBatch, Scheduling, Strategy};
    use grid_batch_queuer::PlaceLimits;
    use grid_batch_store::StoreOptions;
    use grid_batch_work::WorkTable;

    use super::*;

    fn batch(service_id: &ServiceId, number: u8) -> NewBatch {
        NewBatch {
            service_id: service_id.clone(),
            batch_id: ItemId::from_bytes([number; 64]),
            signer: None,
            transaction_ids: vec![ItemId::from_bytes([100 + number; 64])],
            serialized_batch: vec![number],
            declared_access: Some(DeclaredAccess::everything()),
            label: None,
            client: None,
            declared_new: false,
            deadline: None,
        }
    }

    #[test]
    fn only_batches_in_lanes_wait_for_the_window() {
        let service_id: ServiceId = "global".parse().unwrap();
        let mut options = StoreOptions::default();
        let rules = Arc::make_mut(&mut options.scheduling);
        rules.uses_declared_access = true;
        rules.default = Scheduling { strategy: Strategy::Parallel, lanes: 9, ..Scheduling::SERIAL };
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/batches.db", dir.path().display()).parse().unwrap();
        let store = Store::open(&url, options).unwrap();
        store.add(&[&[batch(&service_id, 1), batch(&service_id, 2)]]).unwrap();
        let times: Vec<Timestamp> = [1, 2]
            .map(|number| store.find(&ItemId::from_bytes([number; 64])).unwrap()[0].created_at)
            .to_vec();

        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1)));
        let limits = PlaceLimits::window(1);
        let window = Places::new(limits, WorkTable::default(), clock, |_| ());
        let statuses = Statuses { store, window: Some(window.clone()) };
        let obstacles = || -> Vec<Option<Obstacle>> {
            let ahead = statuses.ahead(&service_id, &times).unwrap();
            ahead.into_iter().map(|ahead| Some(ahead?.obstacle)).collect()
        };
        assert!(matches!(obstacles()[..], [None, Some(Obstacle::Conflict { .. })]));
        let other: ServiceId = "other".parse().unwrap();
        assert_eq!(window.admit(&other, 1), 1);
        assert_eq!(window.admit(&service_id, 1), 0);
        let window_and_conflict = obstacles();
        assert!(matches!(
            window_and_conflict[..],
            [Some(Obstacle::InFlightWindow), Some(Obstacle::Conflict { .. })]
        ));
        let details = statuses.details(&service_id, &ItemId::from_bytes([1; 64])).unwrap();
        assert_eq!(details.unwrap().ahead.map(|it| it.obstacle), Some(Obstacle::InFlightWindow));
    }
}
