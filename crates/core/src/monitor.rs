use std::fmt::Debug;

use futures_core::future::BoxFuture;
use thiserror::Error;

/// The result of following batches.
pub type BatchResult<T> = Result<T, BatchError>;

/// Why batches could not be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Something within failed; trying again may help.
    #[error("{0}")]
    InternalError(String),
    /// The ledger or the store cannot be reached now.
    #[error("not available now: {0}")]
    Unavailable(String),
    /// The answer is not one that the question can have.
    #[error("the answer cannot be used: {0}")]
    InvalidAnswer(String),
}

/// The minimum that a monitor must know of a batch's status.
pub trait BatchStatus: Debug + Clone {
    /// The batch's id.
    fn get_id(&self) -> &str;

    /// Whether the ledger did not say anything of the batch.
    fn is_unknown(&self) -> bool;
}

/// The minimum that a monitor must know to ask for a batch.
pub trait BatchId: Debug + Clone + Sync + Send {
    /// The batch's id.
    fn get_id(&self) -> &str;

    /// The service that orders it.
    fn get_service_id(&self) -> &str;
}

/// A store that knows which batches are to be asked for.
pub trait PendingBatchStore: Send {
    /// How it names them.
    type Id: BatchId;

    /// Up to `limit` batches: the least recently checked first, then in order of submission.
    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Self::Id>>;
}

/// Asks a ledger for the statuses of batches.
pub trait BatchStatusReader: Send {
    /// What it answers.
    type Status: BatchStatus;

    /// The statuses of these batches of one service.
    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<Self::Status>>>;

    /// How many questions may be under way at once.
    fn available_connections(&self) -> usize;
}

/// Writes what a ledger answered.
pub trait BatchUpdater: Send {
    /// What it writes.
    type Status: BatchStatus;

    /// Writes the statuses of batches of one service.
    fn update_batch_statuses(&self, service_id: &str, batches: &[Self::Status]) -> BatchResult<()>;
}
