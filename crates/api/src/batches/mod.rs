//! `POST /batches` and `/batch_statuses`.
//!
//! A submitted list passes through `submit.rs` (checks), `write_queue.rs` and `writer.rs` (commit).

mod commit_progress;
mod status_json;
mod status_query;
mod status_wait;
mod statuses;
mod submit;
mod wait_json;
mod write_queue;
mod writer;

use std::sync::Arc;

use axum::{Router, routing};

pub use commit_progress::CommitProgress;
pub(crate) use status_query::StatusContext;
pub(crate) use submit::{IntakeContext, ServiceChecks, ServiceRule};
pub(crate) use write_queue::WriteQueue;
pub(crate) use writer::BatchWriter;

/// The routes that store batches.
pub(crate) fn intake_routes(context: IntakeContext) -> Router {
    Router::new().route("/batches", routing::post(submit::post)).with_state(Arc::new(context))
}

/// The routes that report the statuses of batches.
pub(crate) fn status_routes(context: StatusContext) -> Router {
    Router::new()
        .route("/batch_statuses", routing::get(statuses::get).post(statuses::post))
        .with_state(Arc::new(context))
}
