//! Access tokens: created, listed and revoked.

mod create;
mod error;
mod json;
mod list;
mod revoke;

use std::sync::Arc;

use grid_batch_core::tokens::TokenStore;
use grid_batch_withdrawals::CallRules;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    parts::ApiParts,
    state::{ApiState, SharedStore},
};

/// How many requests write at once.
const WRITES: usize = 2;

/// What the handlers of tokens need.
pub(crate) struct TokenContext {
    api: Arc<ApiState>,
    store: SharedStore<dyn TokenStore>,
    /// The rules for what tokens may send from accounts, if there are accounts.
    calls: Option<Arc<dyn CallRules>>,
}

impl TokenContext {
    pub(crate) fn new(api: &Arc<ApiState>, store: Arc<dyn TokenStore>, parts: &ApiParts) -> Self {
        let (store, calls) = (api.store(store, WRITES), parts.calls.clone());
        Self { api: Arc::clone(api), store, calls }
    }
}

/// The routes of tokens.
pub(crate) fn routes() -> OpenApiRouter<Arc<TokenContext>> {
    OpenApiRouter::new().routes(routes!(list::get, create::post)).routes(routes!(revoke::post))
}
