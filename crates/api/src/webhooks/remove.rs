use std::sync::Arc;

use axum::{
    extract::{Path, Request, State, rejection::PathRejection},
    http::StatusCode,
};

use super::{WebhookContext, parse_id};
use crate::{
    http::{ApiError, Problems, Query, discard_body},
    webhooks::WebhookRequestError,
};

/// `DELETE /v1/webhooks/{id}`.
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}", tag = "webhooks", operation_id = "removeWebhook", summary = "Remove a webhook",
    params(
        ("id" = String, Path, description = "The webhook"),
    ),
    responses(
        (status = 204, description = "It is removed, with the messages that failed"),
        Problems,
    ),
)]
pub(super) async fn delete(
    State(context): State<Arc<WebhookContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let id = parse_id(path)?;
    let (request, body) = request.into_parts();
    discard_body(&request.headers, body);
    Query::parse(request.uri.query())?.refuse_all()?;
    if context.write(move |store| store.remove_webhook(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(WebhookRequestError::WebhookNotFound.into())
    }
}
