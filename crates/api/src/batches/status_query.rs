use std::{collections::HashMap, sync::Arc};

use grid_batch_core::{
    Ahead, BatchFormat, BatchQueryStore, BatchState, ItemId, Receipt, ServiceId, StoredBatch,
    Timestamp,
};

use crate::{
    access::Caller, batches::status_json::BatchStatusJson, http::ApiError,
    pass_through::Forwarding, state::ApiState,
};

/// What `/batch_statuses` needs.
pub(crate) struct StatusContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: Arc<dyn BatchQueryStore>,
    /// What ids look like.
    pub(crate) format: Option<Arc<dyn BatchFormat>>,
    /// Asks a node about batches that are not stored.
    pub(crate) nodes: Arc<Forwarding>,
}

/// The batches whose statuses a client requested.
#[derive(Debug, Clone)]
pub(crate) struct StatusQuery {
    pub(crate) ids: Vec<ItemId>,
    pub(crate) service_id: Option<ServiceId>,
    /// Who requested them. Batches of services of others are unknown to it.
    pub(crate) caller: Caller,
}

/// What is ahead of the batches that wait behind others, by service and by when they were stored.
type AheadOf = HashMap<(ServiceId, Timestamp), Ahead>;

impl StatusContext {
    pub(crate) fn new(
        api: &Arc<ApiState>,
        store: &Arc<dyn BatchQueryStore>,
        format: Option<Arc<dyn BatchFormat>>,
        nodes: &Arc<Forwarding>,
    ) -> Self {
        Self { api: Arc::clone(api), store: Arc::clone(store), format, nodes: Arc::clone(nodes) }
    }
}

impl StatusQuery {
    /// Reads all statuses, in the order of the request, and why open batches wait.
    pub(crate) fn read_all(
        &self,
        store: &dyn BatchQueryStore,
    ) -> Result<Vec<BatchStatusJson>, ApiError> {
        let found: Vec<_> =
            self.ids.iter().map(|id| self.find_one(store, *id)).collect::<Result<_, _>>()?;
        let ahead_of = self.read_ahead(store, found.iter().flatten())?;
        self.ids
            .iter()
            .zip(found)
            .map(|(id, batch)| {
                let Some(batch) = batch else { return Ok(BatchStatusJson::unknown(*id)) };
                let ahead = ahead_of.get(&(batch.service_id.clone(), batch.created_at));
                let receipts = read_receipts(store, &batch)?;
                Ok(BatchStatusJson::new(batch, receipts, ahead))
            })
            .collect()
    }

    /// Reads one status without what is ahead of the batch: enough to know whether it is pending.
    pub(crate) fn read_one(
        &self,
        store: &dyn BatchQueryStore,
        id: ItemId,
    ) -> Result<BatchStatusJson, ApiError> {
        let Some(batch) = self.find_one(store, id)? else {
            return Ok(BatchStatusJson::unknown(id));
        };
        let receipts = read_receipts(store, &batch)?;
        Ok(BatchStatusJson::new(batch, receipts, None))
    }

    fn find_one(
        &self,
        store: &dyn BatchQueryStore,
        id: ItemId,
    ) -> Result<Option<StoredBatch>, ApiError> {
        let mut found = store.find(&id).map_err(ApiError::read_failed)?;
        found.retain(|batch| self.caller.may(&batch.service_id));
        if let Some(service_id) = &self.service_id {
            found.retain(|batch| batch.service_id == *service_id);
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            services => Err(ApiError::SeveralServices { id: id.to_string(), services }),
        }
    }

    /// What is ahead of each batch: one read for each service. Only a batch that was never tried can be
    /// behind another one.
    fn read_ahead<'a>(
        &self,
        store: &dyn BatchQueryStore,
        batches: impl Iterator<Item = &'a StoredBatch>,
    ) -> Result<AheadOf, ApiError> {
        let mut created_at: HashMap<&ServiceId, Vec<Timestamp>> = HashMap::new();
        for batch in batches.filter(|batch| batch.progress.state == BatchState::New) {
            created_at.entry(&batch.service_id).or_default().push(batch.created_at);
        }
        let mut ahead_of = AheadOf::new();
        for (service_id, times) in created_at {
            let ahead = store.ahead(service_id, &times).map_err(ApiError::read_failed)?;
            let shown = |ahead: Ahead| ahead.visible(|service_id| self.caller.may(service_id));
            let of_service = times.into_iter().zip(ahead);
            ahead_of.extend(
                of_service
                    .filter_map(|(at, ahead)| Some(((service_id.clone(), at), shown(ahead?)))),
            );
        }
        Ok(ahead_of)
    }
}

fn read_receipts(
    store: &dyn BatchQueryStore,
    batch: &StoredBatch,
) -> Result<Vec<Receipt>, ApiError> {
    if batch.progress.state != BatchState::Invalid {
        return Ok(Vec::new());
    }
    let details =
        store.details(&batch.service_id, &batch.batch_id).map_err(ApiError::read_failed)?;
    Ok(details.map_or_else(Vec::new, |details| details.receipts))
}
