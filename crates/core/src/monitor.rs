use std::{fmt, fmt::Debug, time::Duration};

use futures_core::future::BoxFuture;
use thiserror::Error;

use crate::Timestamp;

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
///
/// Only the first method is needed; a store that implements the others too spares the ledger.
pub trait PendingBatchStore: Send {
    /// How it names them.
    type Id: BatchId;

    /// Up to `limit` batches: the least recently checked first, then in order of submission.
    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Self::Id>>;

    /// Of these, up to `limit` that are due at this time and pace.
    fn get_due_batch_ids(
        &self,
        _now: Timestamp,
        _pace: PollPace,
        limit: usize,
    ) -> BatchResult<Vec<Self::Id>> {
        self.get_pending_batch_ids(limit)
    }

    /// Of these, up to `limit` of these services, due or not.
    fn get_pending_batch_ids_of(
        &self,
        service_ids: &[String],
        limit: usize,
    ) -> BatchResult<Vec<Self::Id>> {
        let mut batches = self.get_pending_batch_ids(usize::MAX)?;
        batches.retain(|batch| service_ids.iter().any(|id| id == batch.get_service_id()));
        batches.truncate(limit);
        Ok(batches)
    }

    /// Notes that the ledger was asked for these and said nothing new, so that others have their
    /// turn before they are asked for again.
    fn mark_checked(&self, _batches: &[Self::Id]) -> BatchResult<()> {
        Ok(())
    }
}

/// How often a batch is asked for: at the interval at first, and less often the longer it takes.
///
/// A batch that is stuck costs little, and is never forgotten.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_core::{PollPace, Timestamp};
///
/// let pace = PollPace { interval: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
/// assert_eq!(pace.next_check(at(0), None), at(1));
/// assert_eq!(pace.next_check(at(0), Some(at(100))), at(125));
/// assert_eq!(pace.next_check(at(0), Some(at(1_000))), at(1_060));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollPace {
    /// The shortest time between two questions about a batch.
    pub interval: Duration,
    /// The longest.
    pub longest: Duration,
}

impl PollPace {
    /// A batch waits for the next question this part of the time that it has taken until the last.
    pub const PART: u32 = 4;

    /// When to ask for a batch that was handed to a submitter, and last asked for, at these times.
    pub fn next_check(&self, submitted_at: Timestamp, checked_at: Option<Timestamp>) -> Timestamp {
        let last = checked_at.unwrap_or(submitted_at);
        let part = last.since(submitted_at) / Self::PART;
        last.plus(part.min(self.longest).max(self.interval))
    }
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

    /// Writes the statuses of batches of several services; where that can be one commit, it is.
    fn update_groups(&self, groups: &[(String, Vec<Self::Status>)]) -> BatchResult<()> {
        groups.iter().try_for_each(|(id, batches)| self.update_batch_statuses(id, batches))
    }
}

/// Says whom to ask for a batch's status.
pub trait StatusUrlResolver: fmt::Debug + Sync + Send {
    /// Addresses, the best first: the node that took the batch, then others that may know of it.
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String>;
}
