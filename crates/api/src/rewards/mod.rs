//! `/rewards`.

mod create;
mod get;
mod json;
mod pay;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::withdrawals::WithdrawalContext;

/// The routes of rewards.
pub(crate) fn routes() -> OpenApiRouter<Arc<WithdrawalContext>> {
    OpenApiRouter::new()
        .routes(routes!(create::post))
        .routes(routes!(get::get))
        .routes(routes!(pay::claim))
        .routes(routes!(pay::give))
}
