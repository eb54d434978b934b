use std::{io, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{
    EventFilter, EventKindError, NewWebhook, WebhookSecret, WebhookUrlError, check_webhook_url,
};
use log::error;
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookContext, json::WebhookJson};
use crate::{
    http::{ApiError, JsonObject, Problems, Query, RequestError, ServerError, json_content_type},
    webhooks::WebhookRequestError,
};

const FIELDS: &[&str] = &["url", "services", "kinds"];
const BODY_LIMIT: usize = 64 * 1024;
/// The longest list of services.
const MOST_SERVICES: usize = 100;

/// A new webhook, with the secret, which is shown only once.
#[derive(Serialize, ToSchema)]
struct CreatedWebhookJson {
    #[serde(flatten)]
    webhook: WebhookJson,
    /// What the receiver checks signatures with.
    secret: String,
}

/// The body of `POST /v1/webhooks`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct WebhookRequest {
    /// Where the events are sent.
    url: String,
    /// Only events of these services; default: of all.
    services: Option<Vec<String>>,
    /// Only events of these kinds; default: of all.
    kinds: Option<Vec<String>>,
}

/// `POST /v1/webhooks`.
#[utoipa::path(
    post, path = "/v1/webhooks", tag = "webhooks", operation_id = "createWebhook", summary = "Create a webhook",
    request_body(content = WebhookRequest, content_type = "application/json"),
    responses(
        (status = 201, description = "The webhook, with its secret, which is shown only once", body = CreatedWebhookJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<WebhookContext>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (request, body) = request.into_parts();
    let body = context.api.bodies.read(&request.headers, body, BODY_LIMIT).await?;
    json_content_type(&request.headers).map_err(RequestError::JsonContentType)?;
    Query::parse(request.uri.query())?.refuse_all()?;
    let mut fields = JsonObject::parse(&body.bytes, FIELDS)?;
    let (secret, text) = new_webhook_secret().map_err(random_failed)?;
    let new = NewWebhook {
        url: parse_url(fields.string("url")?)?,
        filter: parse_filter(&mut fields)?,
        secret,
    };
    let webhook = context
        .write(move |store| store.create_webhook(&new))
        .await?
        .ok_or(WebhookRequestError::TooManyWebhooks)?;
    let location = [(LOCATION, format!("/v1/webhooks/{}", webhook.id))];
    let created = CreatedWebhookJson { webhook: webhook.into(), secret: text };
    Ok((StatusCode::CREATED, location, Json(created)).into_response())
}

fn random_failed(error: io::Error) -> ApiError {
    error!(error:%; "the operating system provides no random numbers");
    ServerError::Internal.into()
}

fn parse_url(text: String) -> Result<String, ApiError> {
    let refused = |error: WebhookUrlError| ApiError::invalid_value("url", error.to_string());
    check_webhook_url(&text).map_err(refused)?;
    Ok(text)
}

fn parse_filter(fields: &mut JsonObject) -> Result<EventFilter, ApiError> {
    let services = fields.strings("services")?;
    if services.len() > MOST_SERVICES {
        let rule = format!("it has more than {MOST_SERVICES} services; leave it out for all");
        return Err(ApiError::invalid_value("services", rule));
    }
    let kinds = fields.strings("kinds")?;
    let invalid = |rule| ApiError::invalid_value("kinds", rule);
    Ok(EventFilter {
        services: services.iter().map(|service| service.parse()).collect::<Result<_, _>>()?,
        kinds: kinds
            .iter()
            .map(|kind| kind.parse())
            .collect::<Result<_, EventKindError>>()
            .map_err(|error| invalid(error.to_string()))?,
    })
}

/// A new secret for a webhook, and the text in which a receiver is told it, once.
pub fn new_webhook_secret() -> io::Result<(WebhookSecret, String)> {
    let mut bytes = vec![0; WebhookSecret::BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let text = format!("whsec_{}", BASE64_STANDARD.encode(&bytes));
    Ok((WebhookSecret::new(bytes), text))
}
