use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;

use crate::{app::App, error::ApiError};

#[derive(Debug, Serialize)]
pub(crate) struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

/// `GET /health`: asked where the store is, for it is what a composer looks at.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
) -> Result<(StatusCode, Json<Health>), ApiError> {
    let health = Arc::clone(&app.parts.health);
    let reasons = app.reading.run(move || Ok(health())).await?;
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    Ok((code, Json(Health { status, reasons })))
}
