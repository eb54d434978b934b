//! Webhooks: created, listed, changed and removed, and what was given up.

mod change;
mod create;
mod error;
mod failed;
mod json;
mod list;
mod remove;

use std::sync::Arc;

use grid_batch_core::webhooks::{AllowedNetworks, WebhookId, WebhookStore};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    http::{ApiError, PathId, path_text},
    state::{ApiState, SharedStore},
};

pub use create::new_webhook_secret;
use error::WebhookRequestError;

/// How many requests write at once.
const WRITES: usize = 2;

/// What the handlers need.
pub(crate) struct WebhookContext {
    api: Arc<ApiState>,
    store: SharedStore<dyn WebhookStore>,
    /// Private networks with receivers.
    allowed: AllowedNetworks,
}

impl WebhookContext {
    pub(crate) fn new(api: &Arc<ApiState>, parts: WebhookParts) -> Self {
        let WebhookParts { store, allowed } = parts;
        Self { api: Arc::clone(api), store: api.store(store, WRITES), allowed }
    }
}

/// The webhooks of a store, and the private networks with receivers.
#[derive(Clone)]
pub(crate) struct WebhookParts {
    pub(crate) store: Arc<dyn WebhookStore>,
    pub(crate) allowed: AllowedNetworks,
}

/// The routes of webhooks.
pub(crate) fn routes() -> OpenApiRouter<Arc<WebhookContext>> {
    OpenApiRouter::new()
        .routes(routes!(list::get, create::post))
        .routes(routes!(list::get_one, remove::delete))
        .routes(routes!(failed::get))
        .routes(routes!(failed::redeliver))
        .routes(routes!(change::fields))
        .routes(routes!(change::rotate))
        .routes(routes!(change::pause))
        .routes(routes!(change::resume))
        .routes(routes!(change::ping))
}

fn parse_id(path: PathId) -> Result<WebhookId, ApiError> {
    let id = path_text(path)?.parse().map_err(|_| WebhookRequestError::WebhookNotFound)?;
    Ok(WebhookId(id))
}
