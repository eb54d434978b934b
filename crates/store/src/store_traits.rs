//! The traits of core for [`Store`].

use std::time::Duration;

use grid_batch_core::{
    ActionFilter, ActionOutcome, AddOutcome, Ahead, BatchConflict, BatchDetails, BatchEvent,
    BatchPage, BatchQueryStore, BatchResult, BatchSelection, CommitHistory, CommittedBefore,
    EventFilter, EventListener, EventPage, EventPosition, EventReadError, EventStore, HistoryFacts,
    InstanceId, InstanceLease, IntakeStore, ItemId, ItemIdPrefix, ListCursor, NewBatch,
    OperatorAction, OperatorStore, OperatorTarget, OwnedService, PageOrder, RecordedAction,
    Removed, RetentionCursor, RetentionStore, ServiceId, ServiceOverview, StoredBatch,
    SubmittedBatch, Timestamp,
};

use crate::{Store, events, operator, service_history, submission};

impl IntakeStore for Store {
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>> {
        Ok(Self::add(self, lists)?)
    }
}

impl BatchQueryStore for Store {
    fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find(self, batch_id)?)
    }

    fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find_by_prefix(self, prefix, service_id, limit)?)
    }

    fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find_by_transaction(self, transaction_id)?)
    }

    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<BatchDetails>> {
        Ok(Self::details(self, service_id, batch_id)?)
    }

    fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<u8>>> {
        Ok(Self::serialized_batch(self, service_id, batch_id)?)
    }

    fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> BatchResult<Vec<Option<Ahead>>> {
        Ok(Self::ahead(self, service_id, created_at)?)
    }

    fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        limit: usize,
    ) -> BatchResult<BatchPage> {
        Ok(Self::batch_page(self, selection, order, after, limit)?)
    }

    fn services(
        &self,
        with_idle: bool,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceOverview>> {
        Ok(operator::services(self, with_idle, after, limit)?)
    }

    fn service(&self, service_id: &ServiceId) -> BatchResult<Option<ServiceOverview>> {
        Ok(operator::service(self, service_id)?)
    }

    fn instances(&self) -> BatchResult<Vec<InstanceLease>> {
        Ok(operator::instances(self)?)
    }

    fn claims(
        &self,
        instance: Option<&InstanceId>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<OwnedService>> {
        Ok(operator::claims(self, instance, after, limit)?)
    }
}

impl OperatorStore for Store {
    fn act(&self, action: &OperatorAction) -> BatchResult<ActionOutcome> {
        Ok(Self::act(self, action)?)
    }

    fn actions(
        &self,
        filter: &ActionFilter,
        before: Option<i64>,
        limit: usize,
    ) -> BatchResult<Vec<RecordedAction>> {
        Ok(Self::actions(self, filter, before, limit)?)
    }

    fn being_sent(&self, target: &OperatorTarget) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Self::being_sent(self, target)?)
    }
}

impl EventStore for Store {
    fn events(
        &self,
        from: &EventPosition,
        filter: &EventFilter,
        limit: usize,
    ) -> BatchResult<Result<EventPage, EventReadError>> {
        Ok(events::read(self, from, filter, limit)?)
    }

    fn history(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<BatchEvent>>> {
        Ok(events::history(self, service_id, batch_id)?)
    }

    fn on_events(&self, listener: EventListener) {
        self.scheduler.events().listen(listener);
    }
}

impl CommitHistory for Store {
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<CommittedBefore> {
        Ok(submission::committed_before(self, service_id, batch_id)?)
    }

    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool> {
        Ok(submission::has_committed(self, service_id)?)
    }

    fn refuse_past_transactions(&self) {
        self.refuse_past_transactions();
    }

    fn read_history(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<HistoryFacts> {
        Ok(service_history::read_history(self, service_id, batch_id)?)
    }

    fn is_history_known(&self, service_id: &ServiceId) -> BatchResult<Option<bool>> {
        Ok(service_history::is_history_known(self, service_id)?)
    }

    fn set_history_known(&self, service_id: &ServiceId, is_known: bool) -> BatchResult<()> {
        Ok(service_history::set_history_known(self, service_id, is_known)?)
    }

    fn add_applied(&self, service_id: &ServiceId, transactions: &[ItemId]) -> BatchResult<()> {
        Ok(service_history::add_applied(self, service_id, transactions)?)
    }

    fn generation(&self) -> i64 {
        self.last_seen.get().restored_at.unwrap_or_default()
    }
}

impl RetentionStore for Store {
    fn start_retention(&self, interval: Duration) -> BatchResult<bool> {
        Ok(operator::start_retention(self, interval)?)
    }

    fn remove_ended_before(
        &self,
        age: Duration,
        from: Option<RetentionCursor>,
        limit: usize,
    ) -> BatchResult<Removed> {
        Ok(self.remove_ended(self.now().minus(age), from, limit)?)
    }
}
