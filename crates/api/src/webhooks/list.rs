use std::sync::Arc;

use axum::{Json, extract::State};

use super::{WebhookContext, WebhookRequestError, json::WebhookJson, parse_id};
use crate::http::{ApiError, NoParams, PageJson, Params, PathId, Problems};

/// `GET /v1/webhooks`: all on one page, because there are few.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "webhooks", operation_id = "listWebhooks", summary = "List the webhooks",
    responses(
        (status = 200, description = "The webhooks, without their secrets", body = PageJson<WebhookJson>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<WebhookJson>>, ApiError> {
    let webhooks = context.store.read(|store| store.webhooks()).await?;
    Ok(Json(PageJson::all(webhooks, WebhookJson::new)))
}

/// `GET /v1/webhooks/{id}`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}", tag = "webhooks", operation_id = "getWebhook", summary = "Read a webhook",
    params(("id" = String, Path, description = "The webhook")),
    responses(
        (status = 200, description = "The webhook, without its secret", body = WebhookJson),
        Problems,
    ),
)]
pub(super) async fn get_one(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    _: Params<NoParams>,
) -> Result<Json<WebhookJson>, ApiError> {
    let id = parse_id(path)?;
    let webhooks = context.store.read(|store| store.webhooks()).await?;
    let found = webhooks.into_iter().find(|webhook| webhook.id == id);
    Ok(Json(WebhookJson::new(found.ok_or(WebhookRequestError::WebhookNotFound)?)))
}
