mod make;
mod pay;
mod show;

use std::sync::Arc;

use axum::{Router, routing};

use crate::pools::Pools;

/// The addresses of rewards.
pub(crate) fn routes() -> Router<Arc<Pools>> {
    Router::new()
        .route("/rewards", routing::post(make::post))
        .route("/rewards/{id}", routing::get(show::get))
        .route("/rewards/{id}/claim", routing::post(pay::claim))
        .route("/rewards/{id}/give", routing::post(pay::give))
}
