//! What programs and people read below `/v1`: batches, services, claims and ledgers, and why they wait.

mod batch_bytes;
mod batch_details;
mod batch_json;
mod batch_list;
mod claims;
mod context;
mod details_json;
mod explain;
mod explain_json;
mod find_batch;
mod ledgers;
mod list_query;
mod page_query;
mod service_json;
mod services;
mod wait;

use std::{collections::HashMap, sync::Arc};

use axum::{Router, routing};
use grid_batch_core::{BatchResult, HeaderId, HistoryEntry, ServiceId, ServicePause};

pub(crate) use context::{ReadContext, ReadParts, ReadSources};
pub(crate) use ledgers::LedgerSource;
pub use ledgers::{LedgerReport, NodeReport};

/// The history of a batch, the oldest entry first.
pub(crate) type HistorySource =
    dyn Fn(&ServiceId, &HeaderId) -> BatchResult<Vec<HistoryEntry>> + Send + Sync;

/// Those of these services that operators have paused.
pub(crate) type PauseSource =
    dyn Fn(&[ServiceId]) -> BatchResult<HashMap<ServiceId, ServicePause>> + Send + Sync;

/// The routes that read.
pub(crate) fn routes(context: ReadContext) -> Router {
    Router::new()
        .route("/v1/batches", routing::get(batch_list::get))
        .route("/v1/batches/{id}", routing::get(batch_details::get))
        .route("/v1/batches/{id}/bytes", routing::get(batch_bytes::get))
        .route("/v1/batches/{id}/explain", routing::get(explain::batch))
        .route("/v1/services", routing::get(services::list))
        .route("/v1/services/{id}", routing::get(services::get))
        .route("/v1/services/{id}/explain", routing::get(explain::service))
        .route("/v1/claims", routing::get(claims::get))
        .route("/v1/ledgers", routing::get(ledgers::get))
        .with_state(Arc::new(context))
}
