//! `POST /batches`, `POST /v1/batches` and `/batch_statuses`.
//!
//! A submitted list passes through `submit.rs` (checks), the queue of `group_commit`, and `writer.rs`.

mod accepted_json;
mod error;
mod known_waits;
mod label;
mod named_batch;
mod status_json;
mod status_query;
mod status_wait;
mod statuses;
mod submit;
mod wait_json;
mod writer;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use error::BatchRequestError;
pub(crate) use known_waits::KnownWaits;
pub(crate) use label::{BatchMarks, MarkParams};
pub(crate) use named_batch::{BatchParams, NamedBatch};
pub(crate) use status_query::StatusContext;
pub(crate) use status_wait::StatusWait;
pub(crate) use submit::{
    AcceptedJson, BatchWriteQueue, IntakeContext, ReceivedCallback, ServiceChecks, ServiceRule,
};
pub(crate) use wait_json::{HoldJson, ReasonJson, WaitJson};
pub(crate) use writer::BatchListStore;

/// The routes that store batches.
pub(crate) fn intake_routes() -> OpenApiRouter<Arc<IntakeContext>> {
    OpenApiRouter::new().routes(routes!(submit::post)).routes(routes!(submit::post_own))
}

/// The routes that report the statuses of batches.
pub(crate) fn status_routes() -> OpenApiRouter<Arc<StatusContext>> {
    OpenApiRouter::new().routes(routes!(statuses::get, statuses::post))
}
