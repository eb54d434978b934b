mod json;
mod list;
mod schedule;
mod show;
mod standing;
mod steps;
mod waiting;

use std::sync::Arc;

use axum::{Router, routing};

use crate::pools::Pools;

pub(crate) use schedule::{Once, schedule};
pub(crate) use standing::Standing;

/// The addresses of withdrawals.
pub(crate) fn routes() -> Router<Arc<Pools>> {
    Router::new()
        .route("/withdrawals", routing::get(list::get).post(schedule::post))
        .route("/withdrawals/{id}", routing::get(show::get))
        .route("/withdrawals/{id}/retry", routing::post(steps::retry))
        .route("/withdrawals/{id}/cancel", routing::post(steps::cancel))
}
