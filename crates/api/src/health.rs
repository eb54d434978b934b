use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, Router, extract::State, http::StatusCode, routing};
use serde::Serialize;

use crate::{http::ApiError, state::ApiState};

/// Returns the reasons why the server is not healthy.
pub(crate) type HealthCheck = dyn Fn() -> Vec<String> + Send + Sync;

/// Returns measured values that `/health` shows, with their names. They do not make the server unhealthy.
pub(crate) type HealthDetails = dyn Fn() -> Vec<(&'static str, f64)> + Send + Sync;

/// What `/health` needs.
pub(crate) struct HealthContext {
    pub(crate) api: Arc<ApiState>,
    pub(crate) check: Arc<HealthCheck>,
    pub(crate) details: Arc<HealthDetails>,
}

#[derive(Debug, Serialize)]
struct HealthJson {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(flatten)]
    details: BTreeMap<&'static str, f64>,
}

pub(crate) fn routes(context: HealthContext) -> Router {
    Router::new().route("/health", routing::get(get)).with_state(Arc::new(context))
}

/// `GET /health`. The check may block, so it runs where the store is read.
async fn get(
    State(context): State<Arc<HealthContext>>,
) -> Result<(StatusCode, Json<HealthJson>), ApiError> {
    let check = Arc::clone(&context.check);
    let reasons = context.api.reads.run(move || Ok(check())).await?;
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    let details = (context.details)().into_iter().collect();
    Ok((code, Json(HealthJson { status, reasons, details })))
}
