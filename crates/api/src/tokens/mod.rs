//! Access tokens: created, listed and revoked.

mod create;
mod error;
mod json;
mod list;
mod revoke;

use std::sync::Arc;

use grid_batch_core::BatchResult;
use grid_batch_core::tokens::TokenStore;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    http::ApiError,
    state::{ApiState, StoreAccess},
};

/// How many requests write at once.
const WRITES: usize = 2;

/// What the tokens need.
pub(crate) struct TokenContext {
    api: Arc<ApiState>,
    store: Arc<dyn TokenStore>,
    writes: StoreAccess,
}

impl TokenContext {
    pub(crate) fn new(api: Arc<ApiState>, store: Arc<dyn TokenStore>) -> Self {
        let writes = StoreAccess::new(WRITES, api.database.clone(), ApiError::write_interrupted());
        Self { api, store, writes }
    }

    async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&dyn TokenStore) -> BatchResult<T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let store = Arc::clone(&self.store);
        self.writes.run(move || write(&*store).map_err(ApiError::write_failed)).await
    }
}

/// The routes of tokens.
pub(crate) fn routes() -> OpenApiRouter<Arc<TokenContext>> {
    OpenApiRouter::new().routes(routes!(list::get, create::post)).routes(routes!(revoke::post))
}
