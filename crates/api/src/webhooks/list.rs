use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::BatchResult;
use grid_batch_core::webhooks::{Webhook, WebhookStore};

use super::{WebhookContext, WebhookRequestError, json::ListedWebhookJson, parse_id};
use crate::http::{ApiError, NoParams, PageJson, Params, PathId, Problems};

/// `GET /v1/webhooks`: all on one page, because there are few.
#[utoipa::path(
    get, path = "/v1/webhooks", tag = "webhooks", operation_id = "listWebhooks", summary = "List the webhooks",
    responses(
        (status = 200, description = "The webhooks, without their secrets", body = PageJson<ListedWebhookJson>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<ListedWebhookJson>>, ApiError> {
    let webhooks = context.store.read(|store| read(store, |_| true)).await?;
    Ok(Json(PageJson::all(webhooks, |webhook| webhook)))
}

/// `GET /v1/webhooks/{id}`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}", tag = "webhooks", operation_id = "getWebhook", summary = "Read a webhook",
    params(("id" = String, Path, description = "The webhook")),
    responses(
        (status = 200, description = "The webhook, without its secret", body = ListedWebhookJson),
        Problems,
    ),
)]
pub(super) async fn get_one(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    _: Params<NoParams>,
) -> Result<Json<ListedWebhookJson>, ApiError> {
    let id = parse_id(path)?;
    let found = context.store.read(move |store| read(store, |webhook| webhook.id == id)).await?;
    Ok(Json(found.into_iter().next().ok_or(WebhookRequestError::WebhookNotFound)?))
}

/// The webhooks that are selected, with what waits for them.
fn read(
    store: &dyn WebhookStore,
    is_selected: impl Fn(&Webhook) -> bool,
) -> BatchResult<Vec<ListedWebhookJson>> {
    let mut webhooks = store.webhooks()?;
    webhooks.retain(is_selected);
    let with_backlog = |webhook: Webhook| {
        let backlog = store.backlog(webhook.id)?.unwrap_or_default();
        Ok(ListedWebhookJson::new(webhook, backlog))
    };
    webhooks.into_iter().map(with_backlog).collect()
}
