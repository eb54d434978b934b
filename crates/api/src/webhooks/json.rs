use grid_batch_core::Timestamp;
use grid_batch_core::webhooks::{FailedDelivery, Webhook};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookJson {
    id: String,
    url: String,
    /// Only events of these services; empty: of all.
    services: Vec<String>,
    /// Only events of these kinds; empty: of all.
    kinds: Vec<String>,
    created_at: String,
    /// How often the next event was sent in vain.
    attempts: u32,
    /// Until when it waits.
    next_try_at: Option<String>,
    /// Why the last request failed.
    last_error: Option<String>,
    /// Since when nothing is sent, because the receiver answered with 410.
    disabled_at: Option<String>,
    /// When events were last removed before they were delivered.
    missed_at: Option<String>,
    /// How many messages were given up.
    failed: u64,
}

impl From<Webhook> for WebhookJson {
    fn from(webhook: Webhook) -> Self {
        Self {
            id: webhook.id.to_string(),
            url: webhook.url,
            services: webhook.filter.services.iter().map(ToString::to_string).collect(),
            kinds: webhook.filter.kinds.iter().map(ToString::to_string).collect(),
            created_at: webhook.created_at.rfc3339_micros(),
            attempts: webhook.attempts,
            next_try_at: webhook.next_try_at.map(Timestamp::rfc3339_micros),
            last_error: webhook.last_error,
            disabled_at: webhook.disabled_at.map(Timestamp::rfc3339_micros),
            missed_at: webhook.missed_at.map(Timestamp::rfc3339_micros),
            failed: webhook.failed,
        }
    }
}

/// A message that was given up.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailedMessageJson {
    id: String,
    /// What `webhook-id` was.
    message_id: String,
    /// How often it was sent.
    attempts: u32,
    error: String,
    failed_at: String,
    /// It is to be sent once more.
    again: bool,
    /// What was sent.
    #[schema(value_type = Object)]
    body: Value,
}

impl From<FailedDelivery> for FailedMessageJson {
    fn from(failed: FailedDelivery) -> Self {
        Self {
            id: failed.id.to_string(),
            message_id: failed.message.id,
            attempts: failed.attempts,
            error: failed.error,
            failed_at: failed.failed_at.rfc3339_micros(),
            again: failed.again,
            body: serde_json::from_str(&failed.message.body).unwrap_or_default(),
        }
    }
}
