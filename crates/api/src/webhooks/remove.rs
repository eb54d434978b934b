use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::StatusCode,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{WebhookContext, WebhookRequestError, parse_id};
use crate::http::{ApiError, PathId, Problems, discard_body, read_params};

/// Why, and whether only to say whether it could be done.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReasonParams {
    /// Why, for the log
    reason: String,
    /// Removes nothing
    dry_run: Option<bool>,
}

/// `DELETE /v1/webhooks/{id}`.
#[utoipa::path(
    delete, path = "/v1/webhooks/{id}", tag = "webhooks", operation_id = "removeWebhook", summary = "Remove a webhook",
    params(("id" = String, Path, description = "The webhook"), ReasonParams),
    responses(
        (status = 204, description = "It is removed, with the messages that failed; or, of a dry run, could be"),
        Problems,
    ),
)]
pub(super) async fn delete(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let id = parse_id(path)?;
    let (request, body) = request.into_parts();
    discard_body(&request.headers, body);
    let ReasonParams { reason, dry_run } = read_params(&request)?;
    let asked = context.api.actors.request(&request, reason, dry_run)?;
    if context.store.write(move |store| store.remove_webhook(id, &asked)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(WebhookRequestError::WebhookNotFound.into())
    }
}
