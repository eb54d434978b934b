use futures_core::future::BoxFuture;

use crate::{HeaderId, ScopeId, ServiceId, Submission, monitor::BatchResult};

/// Checks a node before a batch is sent to it.
///
/// Some nodes of a ledger apply a batch later than others. A node that has not applied the batch before
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

/// Tells which batch of a service was committed before another one.
pub trait CommitHistory: Send + Sync {
    /// The last committed batch of the service that was stored before this one. `None`: there is
    /// none, or it is not stored any more.
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> BatchResult<Option<HeaderId>>;
}
