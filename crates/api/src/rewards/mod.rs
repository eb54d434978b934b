//! `/rewards`.

mod create;
mod get;
mod json;
mod pay;

use std::sync::Arc;

use axum::{Router, routing};

use crate::withdrawals::WithdrawalContext;

/// The routes of rewards.
pub(crate) fn routes() -> Router<Arc<WithdrawalContext>> {
    Router::new()
        .route("/rewards", routing::post(create::post))
        .route("/rewards/{id}", routing::get(get::get))
        .route("/rewards/{id}/claim", routing::post(pay::claim))
        .route("/rewards/{id}/give", routing::post(pay::give))
}
