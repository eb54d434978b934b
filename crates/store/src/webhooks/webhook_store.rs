//! Implements `WebhookStore`. One instance at a time delivers to a webhook: the one with the latest lease.

use std::time::Duration;

use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::webhooks::{
    Backlog, DeliveryResult, DueWebhook, FailedDelivery, FailedDeliveryId, NewWebhook, Webhook,
    WebhookChange, WebhookId, WebhookLease, WebhookStore,
};
use grid_batch_core::{BatchResult, Timestamp};

use super::{
    backlog, change, changes, failed, result,
    rows::{DUE_COLUMNS, DueRow, WEBHOOK_COLUMNS, WebhookRow},
};
use crate::sql::{Statement, Store, StoreError};

impl WebhookStore for Store {
    fn create_webhook(
        &self,
        webhook: &NewWebhook,
        request: &OperatorRequest,
    ) -> BatchResult<Option<Webhook>> {
        Ok(changes::create(self, webhook, request)?)
    }

    fn add_trace_export(&self) -> BatchResult<()> {
        Ok(changes::add_trace_export(self)?)
    }

    fn webhooks(&self) -> BatchResult<Vec<Webhook>> {
        let statement = Statement::new(format!(
            "-- list_webhooks
             select {WEBHOOK_COLUMNS} from webhooks order by webhooks.id"
        ));
        let rows: Vec<WebhookRow> = self.pools.read()?.load(&statement)?;
        Ok(rows.into_iter().map(WebhookRow::read).collect::<Result<_, StoreError>>()?)
    }

    fn backlog(&self, id: WebhookId) -> BatchResult<Option<Backlog>> {
        backlog::count(self, id)
    }

    fn change_webhook(
        &self,
        id: WebhookId,
        change: &WebhookChange,
        request: &OperatorRequest,
    ) -> BatchResult<Option<Webhook>> {
        Ok(change::change(self, id, change, request)?)
    }

    fn remove_webhook(&self, id: WebhookId, request: &OperatorRequest) -> BatchResult<bool> {
        Ok(changes::remove(self, id, request)?)
    }

    fn failed_deliveries(
        &self,
        id: WebhookId,
        after: Option<FailedDeliveryId>,
        limit: usize,
    ) -> BatchResult<Option<Vec<FailedDelivery>>> {
        Ok(failed::list(self, id, after, limit)?)
    }

    fn redeliver(
        &self,
        id: WebhookId,
        failed: Option<FailedDeliveryId>,
        request: &OperatorRequest,
    ) -> BatchResult<Option<u64>> {
        Ok(changes::redeliver(self, id, failed, request)?)
    }

    fn due_webhooks(&self) -> BatchResult<Vec<DueWebhook>> {
        let now = self.now().as_micros();
        let statement = Statement::new(format!(
            "-- due_webhooks
             select {DUE_COLUMNS} from webhooks
             where webhooks.disabled_at is null and webhooks.paused_at is null
                 and webhooks.leased_until <= ? and webhooks.next_try_at <= ?
             order by webhooks.id"
        ))
        .long(now)
        .long(now);
        let rows: Vec<DueRow> = self.pools.read()?.load(&statement)?;
        Ok(rows.into_iter().map(|row| row.read(now)).collect::<Result<_, StoreError>>()?)
    }

    /// Returns no lease if another instance was faster.
    fn take_webhook(
        &self,
        webhook: &DueWebhook,
        duration: Duration,
    ) -> BatchResult<Option<WebhookLease>> {
        let statement = Statement::new(
            "-- take_webhook
             update webhooks set lease = lease + 1, leased_until = ?
             where id = ? and lease = ? and cursor = ?",
        )
        .long(self.now().plus(duration).as_micros())
        .long(webhook.id.0)
        .long(webhook.lease)
        .text(webhook.cursor.as_str());
        let taken = self.pools.write()?.execute(&statement)? > 0;
        let lease = WebhookLease { webhook: webhook.id, number: webhook.lease + 1, duration };
        Ok(taken.then_some(lease))
    }

    fn failed_again(&self, id: WebhookId, limit: usize) -> BatchResult<Vec<FailedDelivery>> {
        Ok(failed::again(self, id, limit)?)
    }

    fn delivered(&self, lease: &WebhookLease, result: &DeliveryResult) -> BatchResult<bool> {
        Ok(result::store(self, lease, result)?)
    }

    /// Raises the number of the lease, so that a result that is still on its way is refused.
    fn end_webhook_lease(&self, lease: &WebhookLease) -> BatchResult<bool> {
        let statement = Statement::new(
                "-- end_webhook_lease
                 update webhooks set lease = lease + 1, leased_until = 0 where id = ? and lease = ?",
            )
            .long(lease.webhook.0)
            .long(lease.number);
        Ok(self.pools.write()?.execute(&statement)? > 0)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}
