use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookContext, json::WebhookJson, parse_id};
use crate::{
    http::{ApiError, Problems, Query},
    webhooks::WebhookRequestError,
};

/// All webhooks: there are few.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhooksJson {
    data: Vec<WebhookJson>,
    /// Always null.
    next: Option<String>,
}

/// `GET /v1/webhooks`.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "webhooks", operation_id = "listWebhooks", summary = "List the webhooks",
    responses(
        (status = 200, description = "The webhooks, without their secrets", body = WebhooksJson),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    request: Request,
) -> Result<Json<WebhooksJson>, ApiError> {
    let (request, _) = request.into_parts();
    Query::parse(request.uri.query())?.refuse_all()?;
    let webhooks = context.read(|store| store.webhooks()).await?;
    let data = webhooks.into_iter().map(WebhookJson::from).collect();
    Ok(Json(WebhooksJson { data, next: None }))
}

/// `GET /v1/webhooks/{id}`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}", tag = "webhooks", operation_id = "getWebhook", summary = "Read a webhook",
    params(
        ("id" = String, Path, description = "The webhook"),
    ),
    responses(
        (status = 200, description = "The webhook, without its secret", body = WebhookJson),
        Problems,
    ),
)]
pub(super) async fn get_one(
    State(context): State<Arc<WebhookContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<WebhookJson>, ApiError> {
    let id = parse_id(path)?;
    let (request, _) = request.into_parts();
    Query::parse(request.uri.query())?.refuse_all()?;
    let webhooks = context.read(|store| store.webhooks()).await?;
    let found = webhooks.into_iter().find(|webhook| webhook.id == id);
    Ok(Json(found.ok_or(WebhookRequestError::WebhookNotFound)?.into()))
}
