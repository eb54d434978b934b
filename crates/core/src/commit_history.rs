use crate::{ItemId, ServiceId, monitor::BatchResult};

/// Tells which batches of a service were committed.
pub trait CommitHistory: Send + Sync {
    /// The last batch that was committed in each lane of the service, as far as they are still stored.
    ///
    /// What was committed in a lane before was committed before that one was sent. So a node that has
    /// applied all of them has applied every batch of the service that had ended before this one was taken.
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<CommittedBefore>;

    /// Whether a batch of the service was ever committed.
    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool>;
}

/// The last batch that was committed in each lane of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedBefore {
    /// Those that had ended before the batch in question was taken.
    pub before: Vec<ItemId>,
    /// Those that ended later. What was committed in their lanes before may be older than the batch.
    pub since: Vec<ItemId>,
}
