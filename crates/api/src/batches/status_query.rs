use std::sync::Arc;

use grid_batch_core::{BatchQueryStore, BatchState, HeaderId, ServiceId};
use tokio::sync::Semaphore;

use crate::{batches::status_json::BatchStatusJson, http::ApiError, state::ApiState};

/// What `/batch_statuses` needs.
pub(crate) struct StatusContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) store: Arc<dyn BatchQueryStore>,
    /// Limits how many requests wait for a status at once.
    pub(crate) waiters: Semaphore,
}

/// The batches whose statuses a client requested.
#[derive(Debug, Clone)]
pub(crate) struct StatusQuery {
    pub(crate) ids: Vec<HeaderId>,
    pub(crate) service_id: Option<ServiceId>,
}

impl StatusContext {
    pub(crate) fn new(api: Arc<ApiState>, store: Arc<dyn BatchQueryStore>) -> Self {
        let waiters = Semaphore::new(api.options.max_status_waiters);
        Self { api, store, waiters }
    }
}

impl StatusQuery {
    /// Reads all statuses, in the order of the request.
    pub(crate) fn read_all(
        &self,
        store: &dyn BatchQueryStore,
    ) -> Result<Vec<BatchStatusJson>, ApiError> {
        self.ids.iter().map(|id| self.read_one(store, *id)).collect()
    }

    pub(crate) fn read_one(
        &self,
        store: &dyn BatchQueryStore,
        id: HeaderId,
    ) -> Result<BatchStatusJson, ApiError> {
        let mut found = store.find(&id).map_err(ApiError::read_failed)?;
        if let Some(service_id) = &self.service_id {
            found.retain(|batch| batch.service_id == *service_id);
        }
        let services = found.len();
        let Some(batch) = found.pop() else { return Ok(BatchStatusJson::unknown(id)) };
        if services > 1 {
            return Err(ApiError::SeveralServices { id, services });
        }
        if batch.progress.state != BatchState::Invalid {
            return Ok(BatchStatusJson::new(batch, Vec::new()));
        }
        let details = store.details(&batch.service_id, &id).map_err(ApiError::read_failed)?;
        let receipts = details.map_or_else(Vec::new, |details| details.receipts);
        Ok(BatchStatusJson::new(batch, receipts))
    }
}
