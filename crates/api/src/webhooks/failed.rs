use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::Excerpt;
use grid_batch_core::webhooks::{FailedDelivery, FailedDeliveryId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{WebhookContext, WebhookRequestError, json::FailedMessageJson, parse_id};
use crate::{
    http::{ApiError, PageJson, PageParams, PageStart, Params, PathId, Problems, RequestError},
    state::ActionRequest,
};

/// `GET /v1/webhooks/{id}/failed`.
#[utoipa::path(
    get, path = "/v1/webhooks/{id}/failed", tag = "webhooks", operation_id = "listFailedDeliveries", summary = "List the messages that were given up",
    params(("id" = String, Path, description = "The webhook"), PageParams),
    responses(
        (status = 200, description = "A page of them, the oldest first", body = PageJson<FailedMessageJson>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    Params(PageParams { limit, after }): Params<PageParams>,
) -> Result<Json<PageJson<FailedMessageJson>>, ApiError> {
    let id = parse_id(path)?;
    let after = after.map(PageStart::cursor).transpose()?.map(FailedDeliveryId);
    let read = context.store.read(move |store| store.failed_deliveries(id, after, limit.0 + 1));
    let failed = read.await?.ok_or(WebhookRequestError::WebhookNotFound)?;
    let cursor = |last: &FailedDelivery| last.id.to_string();
    Ok(Json(PageJson::cut(failed, limit, cursor, FailedMessageJson::new)))
}

/// What is sent once more.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RedeliveryJson {
    /// How many messages that had failed.
    messages: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RedeliverParams {
    /// The id of the only message that is sent once more
    failed: Option<String>,
}

/// `POST /v1/webhooks/{id}/redeliver`: all messages that failed, or the one in `failed`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/redeliver", tag = "webhooks", operation_id = "redeliverToWebhook", summary = "Send messages once more that failed",
    params(("id" = String, Path, description = "The webhook"), RedeliverParams),
    request_body(content = ActionRequest),
    responses(
        (status = 200, description = "The messages are sent once more, what waited is tried now, and the webhook is enabled", body = RedeliveryJson),
        Problems,
    ),
)]
pub(super) async fn redeliver(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Result<Json<RedeliveryJson>, ApiError> {
    let id = parse_id(path)?;
    let (asked, ActionRequest { .. }, RedeliverParams { failed }) =
        context.api.read_action(request).await?;
    let failed = failed.as_deref().map(parse_failed).transpose()?;
    let changed = context.store.write(move |store| store.redeliver(id, failed, &asked)).await?;
    match changed.ok_or(WebhookRequestError::WebhookNotFound)? {
        0 if failed.is_some() => Err(RequestError::UnknownTarget { kind: "failed message" }.into()),
        messages => Ok(Json(RedeliveryJson { messages })),
    }
}

fn parse_failed(text: &str) -> Result<FailedDeliveryId, ApiError> {
    text.parse().map(FailedDeliveryId).map_err(|_| {
        let rule =
            format!("it is {}; it must be the id of a message that failed", Excerpt::of(text));
        ApiError::invalid_value("failed", rule)
    })
}
