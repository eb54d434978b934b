//! What programs and people read below `/v1`: batches and why they wait.

mod batch_bytes;
mod batch_details;
mod batch_json;
mod batch_list;
mod context;
mod details_json;
mod find_batch;
mod list_query;
mod page_query;
mod wait;

use std::sync::Arc;

use axum::{Router, routing};
use grid_batch_core::{BatchResult, HeaderId, HistoryEntry, ServiceId};

pub(crate) use context::ReadContext;

/// The history of a batch, the oldest entry first.
pub(crate) type HistorySource =
    dyn Fn(&ServiceId, &HeaderId) -> BatchResult<Vec<HistoryEntry>> + Send + Sync;

/// The routes that read batches.
pub(crate) fn routes(context: ReadContext) -> Router {
    Router::new()
        .route("/v1/batches", routing::get(batch_list::get))
        .route("/v1/batches/{id}", routing::get(batch_details::get))
        .route("/v1/batches/{id}/bytes", routing::get(batch_bytes::get))
        .with_state(Arc::new(context))
}
