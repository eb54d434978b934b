use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    routing,
};
use grid_batch_core::BatchResult;
use serde::Serialize;

use super::report::GasAdminReport;
use crate::{
    http::{ApiError, Query},
    state::ApiState,
};

/// Reads what is known of the gas admins. It may use the store, and asks no node.
pub(crate) type GasAdminSource = dyn Fn() -> BatchResult<Vec<GasAdminReport>> + Send + Sync;

pub(crate) const PATH: &str = "/v1/gas-admins";

struct GasAdminContext {
    api: Arc<ApiState>,
    source: Arc<GasAdminSource>,
}

#[derive(Debug, Serialize)]
struct GasAdminsJson {
    data: Vec<GasAdminReport>,
    /// All are on one page.
    next: Option<String>,
}

/// The route of the gas admins.
pub(crate) fn routes(api: Arc<ApiState>, source: Arc<GasAdminSource>) -> Router {
    let context = Arc::new(GasAdminContext { api, source });
    Router::new().route(PATH, routing::get(get)).with_state(context)
}

/// `GET /v1/gas-admins`.
async fn get(
    State(context): State<Arc<GasAdminContext>>,
    request: Request,
) -> Result<Json<GasAdminsJson>, ApiError> {
    Query::parse(request.uri().query())?.check_names(&[])?;
    let source = Arc::clone(&context.source);
    let read = move || source().map_err(ApiError::read_failed);
    let data = context.api.reads.run(read).await?;
    Ok(Json(GasAdminsJson { data, next: None }))
}
