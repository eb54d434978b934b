use std::sync::Arc;

use grid_batch_core::ServiceId;
use grid_batch_support::catch_panic;
use log::error;

type CallbackFn = dyn Fn(&[ServiceId]) + Send + Sync;

/// A function that is called after each commit with the services that have new batches.
#[derive(Clone)]
pub(crate) struct StoredCallback(Arc<CallbackFn>);

impl StoredCallback {
    pub(crate) fn new(callback: impl Fn(&[ServiceId]) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls the function. A panic is logged and not passed on, because the batches are stored.
    pub(crate) fn notify(&self, services: &[ServiceId]) {
        if let Err(panic) = catch_panic(|| (self.0)(services)) {
            error!(services = services.len(), panic:%; "the stored callback panicked");
        }
    }
}
