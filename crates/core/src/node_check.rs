use futures_core::future::BoxFuture;

use crate::{HeaderId, ScopeId, ServiceId, Submission, monitor::BatchResult};

/// Checks a node before a batch is sent to it.
///
/// Some nodes of a ledger apply a batch later than others. A node that has not applied the batches before
/// this one executes it on an old state, and may report it as invalid permanently.
pub trait NodeCheck: Send + Sync {
    /// The scope of the batches.
    type Id: ScopeId;

    /// Whether the batch may be sent to the node at this URL now. The error is the reason why not, in
    /// words; another node may be able to take it.
    fn check<'a>(
        &'a self,
        url: &'a str,
        submission: &'a Submission<Self::Id>,
    ) -> BoxFuture<'a, Result<(), String>>;
}

/// Tells which batches of a service were committed.
pub trait CommitHistory: Send + Sync {
    /// The last batch that was committed in each lane of the service, as far as they are still stored.
    ///
    /// What was committed in a lane before was committed before that one was sent. So a node that has
    /// applied all of them has applied every batch of the service that had ended before this one was taken.
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> BatchResult<CommittedBefore>;

    /// Whether a batch of the service was ever committed.
    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool>;
}

/// The last batch that was committed in each lane of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedBefore {
    /// Those that had ended before the batch in question was taken.
    pub before: Vec<HeaderId>,
    /// Those that ended later. What was committed in their lanes before may be older than the batch.
    pub since: Vec<HeaderId>,
}
