use std::sync::Arc;

use grid_batch_core::InternalError;
use grid_batch_store::Store;
use grid_batch_webhooks::{DeliveryParts, RunningDeliverer};

use crate::Config;

/// Starts the delivery of events, unless none are written.
pub(super) fn start(
    config: &Config,
    store: &Store,
) -> Result<Option<RunningDeliverer>, InternalError> {
    if !config.store.writes_events {
        return Ok(None);
    }
    let store = Arc::new(store.clone());
    let parts = DeliveryParts { events: store.clone(), webhooks: store };
    RunningDeliverer::start(parts, config.webhooks.clone()).map(Some)
}
