//! One instance at a time delivers to a webhook: it has the last lease.

use std::time::Duration;

use grid_batch_core::{DueWebhook, WebhookLease};

use super::rows::{DUE_COLUMNS, DueRow};
use crate::sql::{Store, StoreError};

/// The webhooks that no instance has and that do not wait.
pub(super) fn due(store: &Store) -> Result<Vec<DueWebhook>, StoreError> {
    let now = store.now().as_micros();
    let statement = store
        .statement(format!(
            "-- due_webhooks
             select {DUE_COLUMNS} from webhooks
             where webhooks.disabled_at is null and webhooks.leased_until <= ?
                 and webhooks.next_try_at <= ?
             order by webhooks.id"
        ))
        .long(now)
        .long(now);
    let rows: Vec<DueRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().map(DueRow::read).collect()
}

/// Takes a webhook, unless another instance was faster.
pub(super) fn take(
    store: &Store,
    webhook: &DueWebhook,
    duration: Duration,
) -> Result<Option<WebhookLease>, StoreError> {
    let statement = store
        .statement(
            "-- take_webhook
             update webhooks set lease = lease + 1, leased_until = ?
             where id = ? and lease = ? and cursor = ?",
        )
        .long(store.now().plus(duration).as_micros())
        .long(webhook.id.0)
        .long(webhook.lease)
        .text(webhook.cursor.as_str());
    let taken = store.pools.write()?.execute(&statement)? > 0;
    let lease = WebhookLease { webhook: webhook.id, number: webhook.lease + 1, duration };
    Ok(taken.then_some(lease))
}

/// Ends a lease. Raises the number, so that a result that is still on its way is refused.
pub(super) fn end(store: &Store, lease: &WebhookLease) -> Result<bool, StoreError> {
    let statement = store
        .statement(
            "-- end_webhook_lease
             update webhooks set lease = lease + 1, leased_until = 0 where id = ? and lease = ?",
        )
        .long(lease.webhook.0)
        .long(lease.number);
    Ok(store.pools.write()?.execute(&statement)? > 0)
}
