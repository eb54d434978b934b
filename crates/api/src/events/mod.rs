//! The feed of events: pages of JSON, and a stream of server-sent events.

mod context;
mod error;
mod event_json;
mod get;
mod request;
mod sse;
mod stream;
mod wake_up;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use context::EventContext;
pub(crate) use error::EventRequestError;

pub(crate) const PATH: &str = "/v1/events";

/// The routes of the feed.
pub(crate) fn routes() -> OpenApiRouter<Arc<EventContext>> {
    OpenApiRouter::new().routes(routes!(get::get)).routes(routes!(stream::get))
}
