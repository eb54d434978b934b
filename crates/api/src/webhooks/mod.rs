//! Webhooks: created, listed and removed, and what was given up.

mod create;
mod error;
mod failed;
mod json;
mod list;
mod redeliver;
mod remove;

use std::sync::Arc;

pub use create::new_webhook_secret;
pub(crate) use error::WebhookRequestError;

use axum::extract::{Path, rejection::PathRejection};
use grid_batch_core::BatchResult;
use grid_batch_core::webhooks::{WebhookId, WebhookStore};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    http::{ApiError, RequestError},
    state::{ApiState, StoreAccess},
};

/// How many requests write at once.
const WRITES: usize = 2;

/// What the webhooks need.
pub(crate) struct WebhookContext {
    api: Arc<ApiState>,
    store: Arc<dyn WebhookStore>,
    writes: StoreAccess,
}

impl WebhookContext {
    pub(crate) fn new(api: Arc<ApiState>, store: Arc<dyn WebhookStore>) -> Self {
        let writes = StoreAccess::new(WRITES, api.database.clone(), ApiError::write_interrupted());
        Self { api, store, writes }
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn WebhookStore) -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        self.api.reads.run(move || read(&*store).map_err(ApiError::read_failed)).await
    }

    async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&dyn WebhookStore) -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        self.writes.run(move || write(&*store).map_err(ApiError::write_failed)).await
    }
}

/// The routes of webhooks.
pub(crate) fn routes() -> OpenApiRouter<Arc<WebhookContext>> {
    OpenApiRouter::new()
        .routes(routes!(list::get, create::post))
        .routes(routes!(list::get_one, remove::delete))
        .routes(routes!(failed::get))
        .routes(routes!(redeliver::post))
}

fn parse_id(path: Result<Path<String>, PathRejection>) -> Result<WebhookId, ApiError> {
    let Path(text) = path.map_err(|_| RequestError::NotFound)?;
    Ok(WebhookId(text.parse().map_err(|_| WebhookRequestError::WebhookNotFound)?))
}
