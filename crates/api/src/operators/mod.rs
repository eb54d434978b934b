//! What operators do: verbs about batches, and the log of them.

mod act;
mod act_on_each;
mod act_on_many;
mod being_sent;
mod context;
mod error;
mod halts;
mod json;
mod list;
mod requests;
mod selection;
mod verbs;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use context::{MANY, OperatorContext, RecallFn, WRITES};
pub(crate) use json::RecordedJson;

/// The routes of operators.
pub(crate) fn routes() -> OpenApiRouter<Arc<OperatorContext>> {
    verbs::routes()
        .routes(routes!(list::get))
        .routes(routes!(halts::get))
        .routes(routes!(act_on_many::post))
        .routes(routes!(act::end_batch))
}
