use std::sync::Arc;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::Ahead;

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

    /// What is ahead of a batch: the place that it needs, if it had no attempt and nothing else is.
    pub(crate) fn ahead(
        waits: &[WaitReason],
        batch: &StoredBatch,
        stored: Option<Ahead>,
    ) -> Option<Ahead> {
        let place = waits.iter().find(|reason| reason.is_place());
        let place = place.filter(|_| batch.progress.state == BatchState::New);
        stored.or_else(|| place.cloned().map(Ahead::only))
    }

    /// Those that are not about another batch.
    pub(crate) fn about(waits: &[WaitReason], batch: &StoredBatch) -> Vec<WaitReason> {
        let is_own =
            |reason: &&WaitReason| reason.batch_id().is_none_or(|id| *id == batch.batch_id);
        waits.iter().filter(is_own).cloned().collect()
    }
}
