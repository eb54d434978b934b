use grid_batch_core::webhooks::{Backlog, FailedDelivery, Webhook};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::http::{EventKindName, Time, json_types};

json_types! {
    /// A webhook, without its secret.
    pub(super) struct WebhookJson(webhook: Webhook) {
        id: String = webhook.id.to_string(),
        url: String = webhook.url,
        /// Only events of these services; empty: of all.
        services: Vec<String> = webhook.filter.services.iter().map(ToString::to_string).collect(),
        /// Only events of these kinds; empty: of all.
        kinds: Vec<EventKindName> =
            webhook.filter.kinds.iter().copied().map(EventKindName).collect(),
        created_at: Time = Time(webhook.created_at),
        /// How often the next event was sent in vain.
        attempts: u32 = webhook.attempts,
        /// Until when it waits.
        next_try_at: Option<Time> = webhook.next_try_at.map(Time),
        /// Why the last request failed.
        last_error: Option<String> = webhook.last_error,
        /// Since when nothing is sent, because the receiver answered with 410.
        disabled_at: Option<Time> = webhook.disabled_at.map(Time),
        /// Since when nothing is sent, because an operator has paused it.
        paused_at: Option<Time> = webhook.paused_at.map(Time),
        /// Until when requests are also signed with the secret before the present one.
        previous_secret_until: Option<Time> = webhook.previous_secret_until.map(Time),
        /// When events were last removed before they were delivered.
        missed_at: Option<Time> = webhook.missed_at.map(Time),
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
        failed_at: Time = Time(failed.failed_at),
        /// It is to be sent once more.
        again: bool = failed.again,
        /// What was sent.
        #[schema(value_type = Object)]
        body: Value = serde_json::from_str(&failed.message.body).unwrap_or_default(),
    }
}

/// A webhook, with how many events wait for it.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedWebhookJson {
    #[serde(flatten)]
    webhook: WebhookJson,
    /// How many events wait to be sent. At most 1,000 are counted.
    waiting: u64,
    /// Whether more events may wait than are counted.
    more_waiting: bool,
}

impl ListedWebhookJson {
    pub(super) fn new(webhook: Webhook, backlog: Backlog) -> Self {
        let Backlog { count: waiting, more: more_waiting } = backlog;
        Self { webhook: WebhookJson::new(webhook), waiting, more_waiting }
    }
}
