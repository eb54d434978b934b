//! `POST /batches` and `/batch_statuses`.
//!
//! A submitted list passes through `submit.rs` (checks), the queue of `group_commit`, and `writer.rs`.

mod status_json;
mod status_query;
mod status_wait;
mod statuses;
mod submit;
mod wait_json;
mod writer;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use status_query::StatusContext;
pub(crate) use submit::{BatchQueue, IntakeContext, ReceivedCallback, ServiceChecks, ServiceRule};
pub(crate) use writer::BatchListStore;

/// The routes that store batches.
pub(crate) fn intake_routes() -> OpenApiRouter<Arc<IntakeContext>> {
    OpenApiRouter::new().routes(routes!(submit::post))
}

/// The routes that report the statuses of batches.
pub(crate) fn status_routes() -> OpenApiRouter<Arc<StatusContext>> {
    OpenApiRouter::new().routes(routes!(statuses::get, statuses::post))
}
