use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::BatchResult;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::report::GasAdminReport;
use crate::{
    http::{ApiError, Problems, Query},
    state::ApiState,
};

/// Reads what is known of the gas admins. It may use the store, and asks no node.
pub(crate) type GasAdminSource = dyn Fn() -> BatchResult<Vec<GasAdminReport>> + Send + Sync;

pub(crate) const PATH: &str = "/v1/gas-admins";

pub(crate) struct GasAdminContext {
    api: Arc<ApiState>,
    source: Arc<GasAdminSource>,
}

impl GasAdminContext {
    pub(crate) fn new(api: Arc<ApiState>, source: Arc<GasAdminSource>) -> Self {
        Self { api, source }
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct GasAdminsJson {
    data: Vec<GasAdminReport>,
    /// All are on one page.
    next: Option<String>,
}

/// The route of the gas admins.
pub(crate) fn routes() -> OpenApiRouter<Arc<GasAdminContext>> {
    OpenApiRouter::new().routes(routes!(get))
}

/// `GET /v1/gas-admins`.
#[utoipa::path(
    get, path = "/v1/gas-admins", tag = "withdrawals", operation_id = "listGasAdmins", summary = "Gas admins: balances, prices and queues",
    responses(
        (status = 200, description = "The gas admins", body = GasAdminsJson),
        Problems,
    ),
)]
async fn get(
    State(context): State<Arc<GasAdminContext>>,
    request: Request,
) -> Result<Json<GasAdminsJson>, ApiError> {
    Query::parse(request.uri().query())?.refuse_all()?;
    let source = Arc::clone(&context.source);
    let read = move || source().map_err(ApiError::read_failed);
    let data = context.api.reads.run(read).await?;
    Ok(Json(GasAdminsJson { data, next: None }))
}
