//! Changes of a stored webhook. Each is an action of an operator.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use grid_batch_core::Timestamp;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::webhooks::{Message, Webhook, WebhookChange, WebhookId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{
    WebhookContext, WebhookRequestError,
    create::{CreatedWebhookJson, new_webhook_secret, parse_kinds, parse_services},
    json::WebhookJson,
    parse_id,
};
use crate::{
    http::{ApiError, EventKindName, NoParams, PathId, Problems, random_failed},
    state::{ActionRequest, action_bodies},
};

/// How long the secret before is used, too, unless the request says.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

type Changed = Result<Json<WebhookJson>, ApiError>;

/// The body of `POST /v1/webhooks/{id}/change`. What is missing stays.
#[derive(Deserialize, ToSchema)]
pub(super) struct WebhookFieldsRequest {
    /// Where the events are sent.
    url: Option<String>,
    /// Only events of these services; empty: of all.
    services: Option<Vec<String>>,
    /// Only events of these kinds; empty: of all.
    #[schema(value_type = Option<Vec<EventKindName>>)]
    kinds: Option<Vec<String>>,
    /// Why, for the log.
    reason: String,
    /// Says what would be changed, and changes nothing.
    dry_run: Option<bool>,
}

/// The body of `POST /v1/webhooks/{id}/rotate`.
#[derive(Deserialize, ToSchema)]
pub(super) struct RotateRequest {
    /// For how long requests are also signed with the secret before: at most 30 days, by default one.
    keep_seconds: Option<u64>,
    /// Why, for the log.
    reason: String,
    /// Says what would be changed, and changes nothing.
    dry_run: Option<bool>,
}

/// The message that tests a webhook.
#[derive(Serialize, ToSchema)]
pub(super) struct PingJson {
    /// Its `webhook-id`. It is among the failed messages until it is delivered.
    message_id: String,
}

action_bodies!(WebhookFieldsRequest, RotateRequest);

impl WebhookContext {
    async fn change(
        &self,
        id: WebhookId,
        change: WebhookChange,
        asked: OperatorRequest,
    ) -> Result<Webhook, ApiError> {
        let changed =
            self.store.write(move |store| store.change_webhook(id, &change, &asked)).await?;
        Ok(changed.ok_or(WebhookRequestError::WebhookNotFound)?)
    }

    async fn change_only(&self, path: PathId, request: Request, change: WebhookChange) -> Changed {
        let id = parse_id(path)?;
        let (asked, ActionRequest { .. }, NoParams {}) = self.api.read_action(request).await?;
        Ok(Json(WebhookJson::new(self.change(id, change, asked).await?)))
    }
}

/// `POST /v1/webhooks/{id}/change`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/change", tag = "webhooks", operation_id = "changeWebhook", summary = "Change where or which events a webhook sends",
    params(("id" = String, Path, description = "The webhook")),
    request_body(content = WebhookFieldsRequest),
    responses((status = 200, description = "The webhook", body = WebhookJson), Problems),
)]
pub(super) async fn fields(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Changed {
    let id = parse_id(path)?;
    let (asked, fields, NoParams {}) = context.api.read_action(request).await?;
    let WebhookFieldsRequest { url, services, kinds, .. } = fields;
    let change = WebhookChange::Fields {
        url: url.map(|url| context.parse_url(url)).transpose()?,
        services: services.as_deref().map(parse_services).transpose()?,
        kinds: kinds.as_deref().map(parse_kinds).transpose()?,
    };
    Ok(Json(WebhookJson::new(context.change(id, change, asked).await?)))
}

/// `POST /v1/webhooks/{id}/rotate`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/rotate", tag = "webhooks", operation_id = "rotateWebhookSecret", summary = "Give a webhook another secret",
    params(("id" = String, Path, description = "The webhook")),
    request_body(content = RotateRequest),
    responses(
        (status = 200, description = "The webhook, with its new secret, which is shown only once", body = CreatedWebhookJson),
        Problems,
    ),
)]
pub(super) async fn rotate(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Result<Json<CreatedWebhookJson>, ApiError> {
    let id = parse_id(path)?;
    let (asked, body, NoParams {}) = context.api.read_action(request).await?;
    let RotateRequest { keep_seconds, .. } = body;
    let kept = keep_seconds.map_or(KEPT, Duration::from_secs);
    if kept > LONGEST_KEPT {
        let rule = format!("it must be at most {} seconds", LONGEST_KEPT.as_secs());
        return Err(ApiError::invalid_value("keep_seconds", rule));
    }
    let (secret, text) = new_webhook_secret().map_err(random_failed)?;
    let change =
        WebhookChange::Secret { secret, previous_until: context.api.clock.now().plus(kept) };
    let secret = Some(text).filter(|_| !asked.dry_run);
    let webhook = WebhookJson::new(context.change(id, change, asked).await?);
    Ok(Json(CreatedWebhookJson { webhook, secret }))
}

/// `POST /v1/webhooks/{id}/pause`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/pause", tag = "webhooks", operation_id = "pauseWebhook", summary = "Send nothing to a webhook",
    params(("id" = String, Path, description = "The webhook")),
    request_body(content = ActionRequest),
    responses((status = 200, description = "The webhook; its events wait", body = WebhookJson), Problems),
)]
pub(super) async fn pause(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Changed {
    context.change_only(path, request, WebhookChange::Pause).await
}

/// `POST /v1/webhooks/{id}/resume`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/resume", tag = "webhooks", operation_id = "resumeWebhook", summary = "End the pause of a webhook",
    params(("id" = String, Path, description = "The webhook")),
    request_body(content = ActionRequest),
    responses((status = 200, description = "The webhook; the events that wait are sent", body = WebhookJson), Problems),
)]
pub(super) async fn resume(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Changed {
    context.change_only(path, request, WebhookChange::Resume).await
}

/// `POST /v1/webhooks/{id}/ping`.
#[utoipa::path(
    post, path = "/v1/webhooks/{id}/ping", tag = "webhooks", operation_id = "pingWebhook", summary = "Send a message that tests a webhook",
    params(("id" = String, Path, description = "The webhook")),
    request_body(content = ActionRequest),
    responses((status = 202, description = "The message is sent by a running server", body = PingJson), Problems),
)]
pub(super) async fn ping(
    State(context): State<Arc<WebhookContext>>,
    path: PathId,
    request: Request,
) -> Result<(StatusCode, Json<PingJson>), ApiError> {
    let id = parse_id(path)?;
    let (asked, ActionRequest { .. }, NoParams {}) = context.api.read_action(request).await?;
    let message = ping_message(id, context.api.clock.now());
    let message_id = message.id.clone();
    context.change(id, WebhookChange::Ping(message), asked).await?;
    Ok((StatusCode::ACCEPTED, Json(PingJson { message_id })))
}

fn ping_message(id: WebhookId, now: Timestamp) -> Message {
    let timestamp = now.rfc3339_micros();
    let data = json!({ "webhook_id": id.to_string() });
    let body = json!({ "type": "webhook.ping", "timestamp": timestamp, "data": data });
    Message { id: format!("ping_{id}-{}", now.as_micros()), body: body.to_string() }
}
