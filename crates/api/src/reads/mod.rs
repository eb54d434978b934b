//! What programs and people read below `/v1`: batches, services, claims and ledgers, and why they wait.

mod access;
mod batch_bytes;
mod batch_details;
mod batch_history;
mod batch_json;
mod batch_list;
mod claims;
mod content;
mod context;
mod counts;
mod details_json;
mod explain;
mod explain_json;
mod explain_queued;
mod history;
mod ledgers;
mod list_query;
mod service_json;
mod services;
mod wait;

use std::{collections::HashMap, sync::Arc};

use grid_batch_core::queries::ServicePause;
use grid_batch_core::{BatchResult, ServiceId};
use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use access::Served;
pub(crate) use context::{ReadContext, ReadSources};
pub(crate) use counts::CountsSource;
pub use counts::OpenCounts;
pub(crate) use history::HistorySource;
pub(crate) use ledgers::LedgerSource;
pub use ledgers::{LedgerReport, NodeReport};

/// Those of these services that operators have paused.
pub(crate) type PauseSource =
    dyn Fn(&[ServiceId]) -> BatchResult<HashMap<ServiceId, ServicePause>> + Send + Sync;

/// The routes that read.
pub(crate) fn routes() -> OpenApiRouter<Arc<ReadContext>> {
    OpenApiRouter::new()
        .routes(routes!(batch_list::get))
        .routes(routes!(batch_details::get))
        .routes(routes!(batch_bytes::get))
        .routes(routes!(content::get))
        .routes(routes!(explain::batch))
        .routes(routes!(services::list))
        .routes(routes!(services::get))
        .routes(routes!(explain::service))
        .routes(routes!(claims::get))
        .routes(routes!(ledgers::get))
        .routes(routes!(history::get))
        .routes(routes!(counts::get))
        .routes(routes!(access::get))
}
