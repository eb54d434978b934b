//! How the store serves `WebhookStore`.

use std::time::Duration;

use grid_batch_core::{
    BatchResult, DeliveryResult, DueWebhook, FailedDelivery, FailedDeliveryId, NewWebhook,
    Timestamp, Webhook, WebhookId, WebhookLease, WebhookStore,
};

use super::{failed, lease, manage, result};
use crate::{Store, events};

impl WebhookStore for Store {
    fn create_webhook(&self, webhook: &NewWebhook) -> BatchResult<Option<Webhook>> {
        let latest = events::latest(self)?;
        Ok(manage::create(self, webhook, &latest)?)
    }

    fn webhooks(&self) -> BatchResult<Vec<Webhook>> {
        Ok(manage::list(self)?)
    }

    fn remove_webhook(&self, id: WebhookId) -> BatchResult<bool> {
        Ok(manage::remove(self, id)?)
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
    ) -> BatchResult<Option<u64>> {
        Ok(failed::redeliver(self, id, failed)?)
    }

    fn due_webhooks(&self) -> BatchResult<Vec<DueWebhook>> {
        Ok(lease::due(self)?)
    }

    fn take_webhook(
        &self,
        webhook: &DueWebhook,
        duration: Duration,
    ) -> BatchResult<Option<WebhookLease>> {
        Ok(lease::take(self, webhook, duration)?)
    }

    fn failed_again(&self, id: WebhookId, limit: usize) -> BatchResult<Vec<FailedDelivery>> {
        Ok(failed::again(self, id, limit)?)
    }

    fn delivered(&self, lease: &WebhookLease, result: &DeliveryResult) -> BatchResult<bool> {
        Ok(result::store(self, lease, result)?)
    }

    fn end_webhook_lease(&self, lease: &WebhookLease) -> BatchResult<bool> {
        Ok(lease::end(self, lease)?)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}
