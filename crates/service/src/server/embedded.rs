//! What a program that embeds the server does without HTTP.

use grid_batch_core::batches::{
    AddOutcome, BatchConflict, BatchFormat, IntakeStore, NewBatch, StoredBatch,
};
use grid_batch_core::events::{
    EventFilter, EventPage, EventPosition, EventReadError, EventStore, Recorded, RecordedSubscriber,
};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::RunningServer;

impl RunningServer {
    /// The format of the ledger's batches. It makes the batches that the server takes from the bytes that clients send.
    pub fn format(&self) -> &dyn BatchFormat {
        &*self.format
    }

    /// Stores a list of batches, whole or not at all, and has them submitted. Limits of the HTTP interface do not apply.
    pub fn submit(
        &self,
        batches: &[NewBatch],
    ) -> BatchResult<Result<Vec<AddOutcome>, BatchConflict>> {
        let outcomes = self.store.add(&[batches])?.into_iter().next().unwrap_or(Ok(Vec::new()));
        if outcomes.is_ok() {
            let services: Vec<ServiceId> = batches.iter().map(|it| it.service_id.clone()).collect();
            self.stored(&services);
        }
        Ok(outcomes)
    }

    /// Has batches of these services submitted that the program has stored in a transaction of its own, with
    /// `Store::add_in_transaction`. Call it after the commit. Otherwise they wait for the next scan of the queue.
    pub fn stored(&self, services: &[ServiceId]) {
        self.stream.recorded(Recorded::Stored(services));
    }

    /// The batches with this id: at most one of each service.
    pub fn status(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        self.store.find(batch_id)
    }

    /// What happened to batches from a position on, oldest first, if `events.enabled` is set.
    pub fn events(
        &self,
        from: &EventPosition,
        limit: usize,
    ) -> BatchResult<Result<EventPage, EventReadError>> {
        EventStore::events(&self.store, from, &EventFilter::default(), limit)
    }
}
