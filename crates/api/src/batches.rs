use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::{GlobalScopeId, HeaderId, NewBatch, ScopeId, ServiceId};
use grid_batch_protocol::{Limits, verify_list};
use serde::Serialize;

use crate::{app::App, body::other_type, error::ApiError, link, query::Query};

#[derive(Debug, Serialize)]
pub(crate) struct Accepted {
    link: String,
}

/// `POST /batches`: answered when the batches are stored, or not at all.
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<(StatusCode, Json<Accepted>), ApiError> {
    let (request, body) = request.into_parts();
    let body = app.bodies.read(&request.headers, body, app.parts.options.body_limit).await?;
    if let Some(other) = other_type(&request.headers, "application/octet-stream") {
        return Err(ApiError::BatchesType(other));
    }
    let named = Query::parse(request.uri.query())?.service_id()?;
    let service = named.as_ref().unwrap_or(GlobalScopeId.service_id()).clone();
    (app.parts.service_rule)(&service)
        .map_err(|rule| ApiError::Service { id: service.clone(), rule })?;

    let place = app.intake.place()?;
    let limits = app.parts.options.limits;
    let batches = app.checking.run(move || check(&body.bytes, &limits, &service)).await?;
    let ids: Vec<HeaderId> = batches.iter().map(|batch| batch.batch_id).collect();
    place.store(batches, body.share).await?;

    let link = link::to_statuses(&request, app.local_addr, &ids, named.as_ref());
    Ok((StatusCode::ACCEPTED, Json(Accepted { link })))
}

fn check(body: &[u8], limits: &Limits, service: &ServiceId) -> Result<Vec<NewBatch>, ApiError> {
    if body.is_empty() {
        return Err(ApiError::NoBatches);
    }
    let verified = verify_list(body, limits).map_err(ApiError::List)?;
    Ok(verified.into_iter().map(|batch| batch.into_new_batch(service.clone())).collect())
}
