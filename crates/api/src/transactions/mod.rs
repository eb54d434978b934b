//! `/v1/transactions`: any transactions of an account beside withdrawals from pools. They are stored as withdrawals
//! are, and share their queue.

mod get;
mod json;
mod list;
mod operations;
mod send;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::withdrawals::WithdrawalContext;

/// The routes of transactions.
pub(crate) fn routes() -> OpenApiRouter<Arc<WithdrawalContext>> {
    OpenApiRouter::new()
        .routes(routes!(list::get, send::post))
        .routes(routes!(get::get))
        .routes(routes!(operations::retry))
        .routes(routes!(operations::cancel))
        .routes(routes!(operations::speed_up))
}
