use std::{collections::HashMap, sync::Arc};

use grid_batch_core::batches::{BatchFormat, BatchState, Receipt, StoredBatch};
use grid_batch_core::queries::{BatchQueryStore, WaitReason};
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use crate::{
    access::Caller,
    batches::{BatchRequestError, KnownWaits, status_json::BatchStatusJson},
    http::ApiError,
    parts::ApiParts,
    pass_through::Forwarding,
    state::ApiState,
};

/// What `/batch_statuses` needs.
pub(crate) struct StatusContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: Arc<dyn BatchQueryStore>,
    /// What ids look like.
    pub(crate) format: Option<Arc<dyn BatchFormat>>,
    /// Asks a node about batches that are not stored.
    pub(crate) nodes: Arc<Forwarding>,
    pub(crate) known_waits: KnownWaits,
}

/// The batches whose statuses a client requested.
#[derive(Debug, Clone)]
pub(crate) struct StatusQuery {
    pub(crate) ids: Vec<ItemId>,
    pub(crate) service_id: Option<ServiceId>,
    /// Who requested them. Batches of services of others are unknown to it.
    pub(crate) caller: Caller,
}

/// Why batches wait.
#[derive(Default)]
struct WaitsOf {
    /// What is ahead of those that wait behind others, by service and by when they were stored.
    ahead: HashMap<(ServiceId, Timestamp), Ahead>,
    /// What only this process knows.
    known: HashMap<ServiceId, Vec<WaitReason>>,
}

impl StatusContext {
    pub(crate) fn new(api: &Arc<ApiState>, parts: &ApiParts, nodes: &Arc<Forwarding>) -> Self {
        Self {
            api: Arc::clone(api),
            store: Arc::clone(&parts.query_store),
            format: parts.format.clone(),
            nodes: Arc::clone(nodes),
            known_waits: parts.read_sources.known_waits.clone(),
        }
    }
}

impl StatusQuery {
    /// Reads all statuses, in the order of the request, and why open batches wait.
    pub(crate) fn read_all(
        &self,
        store: &dyn BatchQueryStore,
        known_waits: &KnownWaits,
    ) -> Result<Vec<BatchStatusJson>, ApiError> {
        let found: Vec<_> =
            self.ids.iter().map(|id| self.find_one(store, *id)).collect::<Result<_, _>>()?;
        let waits = self.read_waits(store, known_waits, found.iter().flatten())?;
        self.ids
            .iter()
            .zip(found)
            .map(|(id, batch)| {
                let Some(batch) = batch else { return Ok(BatchStatusJson::unknown(*id)) };
                let known = waits.known.get(&batch.service_id).map_or(&[][..], Vec::as_slice);
                let ahead = waits.ahead.get(&(batch.service_id.clone(), batch.created_at)).cloned();
                // Those that wait behind others say what these wait for.
                let also =
                    if ahead.is_none() { KnownWaits::about(known, &batch) } else { Vec::new() };
                let ahead = KnownWaits::ahead(known, &batch, ahead);
                let receipts = read_receipts(store, &batch)?;
                Ok(BatchStatusJson::new(batch, receipts, ahead.as_ref(), &also))
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
        Ok(BatchStatusJson::new(batch, receipts, None, &[]))
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
            services => {
                Err(BatchRequestError::SeveralServices { id: id.to_string(), services }.into())
            }
        }
    }

    /// Why each batch waits: one read for each service. Only a batch that was never tried can be behind another
    /// one.
    fn read_waits<'a>(
        &self,
        store: &dyn BatchQueryStore,
        known_waits: &KnownWaits,
        batches: impl Iterator<Item = &'a StoredBatch>,
    ) -> Result<WaitsOf, ApiError> {
        let mut created_at: HashMap<&ServiceId, Vec<Timestamp>> = HashMap::new();
        for batch in batches.filter(|batch| !batch.progress.state.is_terminal()) {
            let of_service = created_at.entry(&batch.service_id).or_default();
            if batch.progress.state == BatchState::New {
                of_service.push(batch.created_at);
            }
        }
        let mut waits = WaitsOf::default();
        for (service_id, times) in created_at {
            waits.known.insert(service_id.clone(), known_waits.of(service_id));
            if times.is_empty() {
                continue;
            }
            let ahead = store.ahead(service_id, &times).map_err(ApiError::read_failed)?;
            let shown = |ahead: Ahead| ahead.visible(|service_id| self.caller.may(service_id));
            let of_service = times.into_iter().zip(ahead);
            waits.ahead.extend(
                of_service
                    .filter_map(|(at, ahead)| Some(((service_id.clone(), at), shown(ahead?)))),
            );
        }
        Ok(waits)
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
