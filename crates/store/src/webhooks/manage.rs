//! Webhooks are created, listed and removed.

use grid_batch_core::{EventCursor, NewWebhook, Webhook, WebhookId};

use super::rows::{WEBHOOK_COLUMNS, WebhookRow, lines};
use crate::sql::{Store, StoreError};

/// The most webhooks. Each is read in full whenever events are delivered.
const MOST_WEBHOOKS: i64 = 100;

/// Stores a webhook that gets the events after a position. `None`: there are as many as there may be.
pub(super) fn create(
    store: &Store,
    webhook: &NewWebhook,
    latest: &EventCursor,
) -> Result<Option<Webhook>, StoreError> {
    let services = lines(webhook.filter.services.iter());
    let kinds = lines(webhook.filter.kinds.iter());
    let statement = store
        .statement(format!(
            "-- create_webhook
             insert into webhooks (url, secret, services, kinds, created_at, cursor)
             select ?, ?, ?, ?, ?, ? where (select count(*) from webhooks) < {MOST_WEBHOOKS}
             returning id, url, services, kinds, created_at, attempts, next_try_at, last_error,
                 disabled_at, missed_at, cast(0 as bigint) as failed"
        ))
        .text(&webhook.url)
        .bytes(webhook.secret.expose())
        .text(&services)
        .text(&kinds)
        .long(store.now().as_micros())
        .text(latest.as_str());
    let rows: Vec<WebhookRow> = store.pools.write()?.load(&statement)?;
    rows.into_iter().next().map(WebhookRow::read).transpose()
}

/// All webhooks, by id.
pub(super) fn list(store: &Store) -> Result<Vec<Webhook>, StoreError> {
    let statement = store.statement(format!(
        "-- list_webhooks
         select {WEBHOOK_COLUMNS} from webhooks order by webhooks.id"
    ));
    let rows: Vec<WebhookRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().map(WebhookRow::read).collect()
}

/// Removes a webhook. Returns whether there was one.
pub(super) fn remove(store: &Store, id: WebhookId) -> Result<bool, StoreError> {
    let statement =
        store.statement("-- remove_webhook\n delete from webhooks where id = ?").long(id.0);
    Ok(store.pools.write()?.execute(&statement)? > 0)
}
