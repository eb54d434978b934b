use std::{collections::BTreeSet, io, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::ServiceId;
use grid_batch_core::events::EventFilter;
use grid_batch_core::events::EventKind;
use grid_batch_core::webhooks::{NewWebhook, WebhookSecret, check_webhook_url};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{WebhookContext, WebhookRequestError, json::WebhookJson};
use crate::{
    http::{ApiError, EventKindName, NoParams, Problems, parse_value, random_failed},
    state::action_bodies,
};

/// The longest list of services.
const MOST_SERVICES: usize = 100;

/// A webhook, with its new secret, which is shown only once.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedWebhookJson {
    #[serde(flatten)]
    pub(super) webhook: WebhookJson,
    /// What the receiver checks signatures with. Not of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
}

/// The body of `POST /v1/webhooks`.
#[derive(Deserialize, ToSchema)]
struct WebhookRequest {
    /// Where the events are sent.
    url: String,
    /// Only events of these services; default: of all.
    services: Option<Vec<String>>,
    /// Only events of these kinds; default: of all.
    #[schema(value_type = Option<Vec<EventKindName>>)]
    kinds: Option<Vec<String>>,
    /// Why, for the log.
    reason: String,
    /// Says what would be created, and creates nothing.
    dry_run: Option<bool>,
}

action_bodies!(WebhookRequest);

/// `POST /v1/webhooks`.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "webhooks", operation_id = "createWebhook", summary = "Create a webhook",
    request_body(content = WebhookRequest, content_type = "application/json"),
    responses(
        (status = 200, description = "Of a dry run: the webhook that would be created", body = CreatedWebhookJson),
        (status = 201, description = "The webhook, with its secret, which is shown only once", body = CreatedWebhookJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<WebhookContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (asked, body, NoParams {}) = context.api.read_action(request).await?;
    let WebhookRequest { url, services, kinds, .. } = body;
    let (secret, text) = new_webhook_secret().map_err(random_failed)?;
    let filter = EventFilter {
        services: parse_services(&services.unwrap_or_default())?,
        kinds: parse_kinds(&kinds.unwrap_or_default())?,
    };
    let new = NewWebhook { url: context.parse_url(url)?, filter, secret };
    let dry_run = asked.dry_run;
    let created = context.store.write(move |store| store.create_webhook(&new, &asked)).await?;
    let webhook = created.ok_or(WebhookRequestError::TooManyWebhooks)?;
    let location = [(LOCATION, format!("/v1/webhooks/{}", webhook.id))];
    let webhook = WebhookJson::new(webhook);
    if dry_run {
        return Ok(Json(CreatedWebhookJson { webhook, secret: None }).into_response());
    }
    let created = CreatedWebhookJson { webhook, secret: Some(text) };
    Ok((StatusCode::CREATED, location, Json(created)).into_response())
}

impl WebhookContext {
    pub(super) fn parse_url(&self, text: String) -> Result<String, ApiError> {
        check_webhook_url(&text, &self.allowed)
            .map_err(|error| ApiError::invalid_value("url", error.to_string()))?;
        Ok(text)
    }
}

pub(super) fn parse_kinds(kinds: &[String]) -> Result<BTreeSet<EventKind>, ApiError> {
    kinds.iter().map(|kind| parse_value("kinds", kind)).collect()
}

pub(super) fn parse_services(services: &[String]) -> Result<BTreeSet<ServiceId>, ApiError> {
    if services.len() > MOST_SERVICES {
        let rule = format!("it has more than {MOST_SERVICES} services; leave it out for all");
        return Err(ApiError::invalid_value("services", rule));
    }
    Ok(services.iter().map(|service| service.parse()).collect::<Result<_, _>>()?)
}

/// A new secret for a webhook, and the text in which a receiver is told it, once.
pub fn new_webhook_secret() -> io::Result<(WebhookSecret, String)> {
    let mut bytes = vec![0; WebhookSecret::BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = format!("whsec_{}", BASE64_STANDARD.encode(&bytes));
    Ok((WebhookSecret::new(bytes), text))
}
