//! The feed of events: pages of JSON, a stream of server-sent events, and the history of a batch.

mod context;
mod event_json;
mod get;
mod history;
mod request;
mod sse;
mod stream;
mod wake;

use std::sync::Arc;

use axum::{Router, routing};

pub(crate) use context::EventContext;

pub(crate) const PATH: &str = "/v1/events";

/// The routes of the feed.
pub(crate) fn routes(context: EventContext) -> Router {
    Router::new()
        .route(PATH, routing::get(get::get))
        .route("/v1/events/stream", routing::get(stream::get))
        .route("/v1/batches/{id}/history", routing::get(history::get))
        .with_state(Arc::new(context))
}
