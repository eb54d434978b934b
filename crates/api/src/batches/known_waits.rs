use std::sync::Arc;

use grid_batch_core::{Ahead, BatchState, ServiceId, StoredBatch, WaitReason};

/// Why the batches of a service wait, as far as only this process knows. It asks no node.
type WaitSource = dyn Fn(&ServiceId) -> Vec<WaitReason> + Send + Sync;

/// What only this process knows of why services wait: nothing, unless the builder says where it is.
#[derive(Clone, Default)]
pub(crate) struct KnownWaits(pub(crate) Option<Arc<WaitSource>>);

impl KnownWaits {
    /// Why the batches of a service wait.
    pub(crate) fn of(&self, service_id: &ServiceId) -> Vec<WaitReason> {
        self.0.as_ref().map_or_else(Vec::new, |source| source(service_id))
    }

    /// What is ahead of a batch: the in-flight window, if it had no attempt and nothing else is.
    pub(crate) fn ahead(
        waits: &[WaitReason],
        batch: &StoredBatch,
        stored: Option<Ahead>,
    ) -> Option<Ahead> {
        let may_wait = batch.progress.state == BatchState::New;
        let in_window = may_wait && waits.contains(&WaitReason::InFlightWindow);
        stored.or_else(|| in_window.then(|| Ahead::only(WaitReason::InFlightWindow)))
    }
}
