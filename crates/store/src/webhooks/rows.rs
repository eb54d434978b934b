use grid_batch_core::Timestamp;
use grid_batch_core::events::EventFilter;
use grid_batch_core::webhooks::{
    DueWebhook, FailedDelivery, FailedDeliveryId, Message, Webhook, WebhookId, WebhookSecret,
};

use crate::sql::{StoreError, result_row, rows::service_id};

/// Joins entries, one per line.
pub(super) fn lines(entries: impl Iterator<Item = impl ToString>) -> String {
    entries.map(|entry| entry.to_string()).collect::<Vec<_>>().join("\n")
}

fn filter(services: &str, kinds: &str) -> Result<EventFilter, StoreError> {
    Ok(EventFilter {
        services: services.lines().map(service_id).collect::<Result<_, _>>()?,
        kinds: kinds
            .lines()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(StoreError::corrupt)?,
    })
}

/// The columns of a [`WebhookRow`].
pub(super) const WEBHOOK_COLUMNS: &str =
    "webhooks.id, webhooks.url, webhooks.services, webhooks.kinds, webhooks.created_at,
             webhooks.attempts, webhooks.next_try_at, webhooks.last_error, webhooks.disabled_at,
             webhooks.missed_at, webhooks.paused_at, webhooks.previous_secret_until, (
                 select count(*) from failed_deliveries f where f.webhook_id = webhooks.id) as failed";

result_row! {
    pub(super) struct WebhookRow {
        id: i64,
        url: String,
        services: String,
        kinds: String,
        created_at: i64,
        attempts: i32,
        next_try_at: i64,
        last_error: Option<String>,
        disabled_at: Option<i64>,
        missed_at: Option<i64>,
        paused_at: Option<i64>,
        previous_secret_until: Option<i64>,
        failed: i64,
    }
}

impl WebhookRow {
    pub(super) fn read(self) -> Result<Webhook, StoreError> {
        let next_try_at = (self.next_try_at > 0).then_some(self.next_try_at);
        Ok(Webhook {
            id: WebhookId(self.id),
            filter: filter(&self.services, &self.kinds)?,
            url: self.url,
            created_at: Timestamp::from_micros(self.created_at),
            attempts: self.attempts.unsigned_abs(),
            next_try_at: next_try_at.map(Timestamp::from_micros),
            last_error: self.last_error,
            disabled_at: self.disabled_at.map(Timestamp::from_micros),
            missed_at: self.missed_at.map(Timestamp::from_micros),
            paused_at: self.paused_at.map(Timestamp::from_micros),
            previous_secret_until: self.previous_secret_until.map(Timestamp::from_micros),
            failed: self.failed.unsigned_abs(),
        })
    }
}

/// The columns of a [`DueRow`].
pub(super) const DUE_COLUMNS: &str =
    "webhooks.id, webhooks.url, webhooks.secret, webhooks.services, webhooks.kinds, webhooks.cursor,
             webhooks.attempts, webhooks.lease, webhooks.previous_secret, webhooks.previous_secret_until,
             exists (
                 select 1 from failed_deliveries f where f.webhook_id = webhooks.id and f.again)
             as has_failed_again";

result_row! {
    pub(super) struct DueRow {
        id: i64,
        url: String,
        secret: Vec<u8>,
        services: String,
        kinds: String,
        cursor: String,
        attempts: i32,
        lease: i64,
        previous_secret: Option<Vec<u8>>,
        previous_secret_until: Option<i64>,
        has_failed_again: bool,
    }
}

impl DueRow {
    pub(super) fn read(self, now: i64) -> Result<DueWebhook, StoreError> {
        let is_kept = self.previous_secret_until.is_some_and(|until| now < until);
        let secrets = [Some(self.secret), self.previous_secret.filter(|_| is_kept)];
        Ok(DueWebhook {
            id: WebhookId(self.id),
            filter: filter(&self.services, &self.kinds)?,
            url: self.url,
            secrets: secrets.into_iter().flatten().map(WebhookSecret::new).collect(),
            cursor: self.cursor.parse().map_err(StoreError::corrupt)?,
            attempts: self.attempts.unsigned_abs(),
            lease: self.lease,
            has_failed_again: self.has_failed_again,
        })
    }
}

/// The columns of a [`FailedDeliveryRow`], from `failed_deliveries f`.
pub(super) const FAILED_COLUMNS: &str =
    "f.id, f.message_id, f.body, f.attempts, f.error, f.failed_at, f.again";

result_row! {
    pub(super) struct FailedDeliveryRow {
        id: i64,
        message_id: String,
        body: String,
        attempts: i32,
        error: String,
        failed_at: i64,
        again: bool,
    }
}

impl FailedDeliveryRow {
    pub(super) fn read(self) -> FailedDelivery {
        FailedDelivery {
            id: FailedDeliveryId(self.id),
            message: Message { id: self.message_id, body: self.body },
            attempts: self.attempts.unsigned_abs(),
            error: self.error,
            failed_at: Timestamp::from_micros(self.failed_at),
            again: self.again,
        }
    }
}
