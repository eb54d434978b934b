//! `POST /batches`, `POST /v1/batches` and `/batch_statuses`.
//!
//! A submitted list passes through `submit.rs` (checks), the queue of `group_commit`, and `writer.rs`.

mod accepted_json;
mod label;
mod status_json;
mod status_query;
mod status_wait;
mod statuses;
mod submit;
mod wait_json;
mod writer;

use std::sync::Arc;

use axum::{Router, routing};

pub(crate) use status_query::StatusContext;
pub(crate) use status_wait::{StatusWait, requested_wait};
pub(crate) use submit::{BatchQueue, IntakeContext, ServiceChecks, ServiceRule};
pub(crate) use wait_json::WaitJson;
pub(crate) use writer::BatchListStore;

/// The routes that store batches.
pub(crate) fn intake_routes(context: IntakeContext) -> Router {
    Router::new()
        .route("/batches", routing::post(submit::post))
        .route("/v1/batches", routing::post(submit::post_own))
        .with_state(Arc::new(context))
}

/// The routes that report the statuses of batches.
pub(crate) fn status_routes(context: StatusContext) -> Router {
    Router::new()
        .route("/batch_statuses", routing::get(statuses::get).post(statuses::post))
        .with_state(Arc::new(context))
}
