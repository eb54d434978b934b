use grid_batch_core::Timestamp;
use grid_batch_core::webhooks::{FailedDelivery, Webhook};
use serde_json::Value;

use crate::http::json_types;

json_types! {
    /// A webhook, without its secret.
    pub(super) struct WebhookJson(webhook: Webhook) {
        id: String = webhook.id.to_string(),
        url: String = webhook.url,
        /// Only events of these services; empty: of all.
        services: Vec<String> = webhook.filter.services.iter().map(ToString::to_string).collect(),
        /// Only events of these kinds; empty: of all.
        kinds: Vec<String> = webhook.filter.kinds.iter().map(ToString::to_string).collect(),
        created_at: String = webhook.created_at.rfc3339_micros(),
        /// How often the next event was sent in vain.
        attempts: u32 = webhook.attempts,
        /// Until when it waits.
        next_try_at: Option<String> = webhook.next_try_at.map(Timestamp::rfc3339_micros),
        /// Why the last request failed.
        last_error: Option<String> = webhook.last_error,
        /// Since when nothing is sent, because the receiver answered with 410.
        disabled_at: Option<String> = webhook.disabled_at.map(Timestamp::rfc3339_micros),
        /// When events were last removed before they were delivered.
        missed_at: Option<String> = webhook.missed_at.map(Timestamp::rfc3339_micros),
        /// How many messages were given up.
        failed: u64 = webhook.failed,
    }

    /// A message that was given up.
    pub(super) struct FailedMessageJson(failed: FailedDelivery) {
        id: String = failed.id.to_string(),
        /// What `webhook-id` was.
        message_id: String = failed.message.id,
        /// How often it was sent.
        attempts: u32 = failed.attempts,
        error: String = failed.error,
        failed_at: String = failed.failed_at.rfc3339_micros(),
        /// It is to be sent once more.
        again: bool = failed.again,
        /// What was sent.
        #[schema(value_type = Object)]
        body: Value = serde_json::from_str(&failed.message.body).unwrap_or_default(),
    }
}
