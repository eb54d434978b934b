//! Access tokens: created, listed and revoked.

mod create;
mod error;
mod json;
mod list;
mod revoke;

use std::sync::Arc;

use grid_batch_core::tokens::TokenStore;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::state::StoreContext;

/// How many requests write at once.
pub(crate) const WRITES: usize = 2;

type TokenContext = StoreContext<dyn TokenStore>;

/// The routes of tokens.
pub(crate) fn routes() -> OpenApiRouter<Arc<TokenContext>> {
    OpenApiRouter::new().routes(routes!(list::get, create::post)).routes(routes!(revoke::post))
}
