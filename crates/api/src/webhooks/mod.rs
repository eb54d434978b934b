//! Webhooks: created, listed and removed, and what was given up.

mod create;
mod error;
mod failed;
mod json;
mod list;
mod remove;

use std::sync::Arc;

use grid_batch_core::webhooks::{WebhookId, WebhookStore};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    http::{ApiError, PathId, path_text},
    state::StoreContext,
};

pub use create::new_webhook_secret;
use error::WebhookRequestError;

/// How many requests write at once.
pub(crate) const WRITES: usize = 2;

type WebhookContext = StoreContext<dyn WebhookStore>;

/// The routes of webhooks.
pub(crate) fn routes() -> OpenApiRouter<Arc<WebhookContext>> {
    OpenApiRouter::new()
        .routes(routes!(list::get, create::post))
        .routes(routes!(list::get_one, remove::delete))
        .routes(routes!(failed::get))
        .routes(routes!(failed::redeliver))
}

fn parse_id(path: PathId) -> Result<WebhookId, ApiError> {
    let id = path_text(path)?.parse().map_err(|_| WebhookRequestError::WebhookNotFound)?;
    Ok(WebhookId(id))
}
