use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use grid_batch_core::FailedDeliveryId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookContext, json::FailedMessageJson, parse_id};
use crate::{
    http::{
        ApiError, Problems, Query,
        page_query::{after, limit},
    },
    webhooks::WebhookRequestError,
};

/// The messages that were given up.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedPageJson {
    data: Vec<FailedMessageJson>,
    /// The `after` of the next page; null: there is none.
    next: Option<String>,
}

/// `GET /v1/webhooks/{id}/failed`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/failed", tag = "webhooks", operation_id = "listFailedDeliveries", summary = "List the messages that were given up",
    params(
        ("id" = String, Path, description = "The webhook"),
        ("limit" = Option<u32>, Query, description = "At most so many, up to 1,000; default 100"),
        ("after" = Option<String>, Query, description = "The `next` of the page before"),
    ),
    responses(
        (status = 200, description = "A page of them, the oldest first", body = FailedPageJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<FailedPageJson>, ApiError> {
    let id = parse_id(path)?;
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(&["after", "limit"])?;
    let after = after(&query)?.map(FailedDeliveryId);
    let limit = limit(&query)?;
    let page = context.read(move |store| store.failed_deliveries(id, after, limit + 1)).await?;
    let mut page = page.ok_or(WebhookRequestError::WebhookNotFound)?;
    let has_next = page.len() > limit;
    page.truncate(limit);
    let next = page.last().filter(|_| has_next).map(|failed| failed.id.to_string());
    Ok(Json(FailedPageJson { data: page.into_iter().map(FailedMessageJson::from).collect(), next }))
}
