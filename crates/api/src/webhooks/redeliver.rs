use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use grid_batch_core::Excerpt;
use grid_batch_core::webhooks::FailedDeliveryId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{WebhookContext, parse_id};
use crate::{
    http::{ApiError, Problems, Query, RequestError},
    webhooks::WebhookRequestError,
};

/// What is sent once more.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RedeliveryJson {
    /// How many messages that had failed.
    messages: u64,
}

/// The body of `POST /v1/webhooks/{id}/redeliver`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct RedeliverRequest {
    /// Why, for the log.
    reason: String,
    /// Sends nothing, and says how many messages would be sent.
    dry_run: Option<bool>,
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
    params(
        ("id" = String, Path, description = "The webhook"),
        RedeliverParams,
    ),
    request_body(content = RedeliverRequest),
    responses(
        (status = 200, description = "The messages are sent once more, what waited is tried now, and the webhook is enabled", body = RedeliveryJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<WebhookContext>>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Json<RedeliveryJson>, ApiError> {
    let id = parse_id(path)?;
    let (request, mut fields) = context.api.read_json(request, &["reason", "dry_run"]).await?;
    let params: RedeliverParams = Query::parse(request.uri.query())?.params()?;
    let failed = params.failed.as_deref().map(parse_failed).transpose()?;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let changed = context.write(move |store| store.redeliver(id, failed, &asked)).await?;
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
