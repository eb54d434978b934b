use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::BatchResult;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::report::GasAdminReport;
use crate::{
    http::{ApiError, NoParams, PageJson, Params, Problems},
    state::ApiState,
};

/// Reads what is known of the gas admins. It may use the store, and asks no node.
pub(crate) type GasAdminSource = dyn Fn() -> BatchResult<Vec<GasAdminReport>> + Send + Sync;

pub(crate) const PATH: &str = "/v1/gas-admins";

pub(crate) struct GasAdminContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) source: Arc<GasAdminSource>,
}

/// The route of the gas admins.
pub(crate) fn routes() -> OpenApiRouter<Arc<GasAdminContext>> {
    OpenApiRouter::new().routes(routes!(get))
}

/// `GET /v1/gas-admins`.
#[utoipa::path(
    get, path = "/v1/gas-admins", tag = "withdrawals", operation_id = "listGasAdmins", summary = "Gas admins: balances, prices and queues",
    responses(
        (status = 200, description = "The gas admins", body = PageJson<GasAdminReport>),
        Problems,
    ),
)]
async fn get(
    State(context): State<Arc<GasAdminContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<GasAdminReport>>, ApiError> {
    let source = Arc::clone(&context.source);
    let data = context.api.read(move || source()).await?;
    Ok(Json(PageJson { data, next: None }))
}
