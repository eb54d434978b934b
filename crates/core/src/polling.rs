//! Asking the ledger for the status of batches.

use std::{fmt::Debug, time::Duration};

use crate::{BatchResult, Timestamp};

/// The minimum that the poller needs to know of a batch's status.
pub trait BatchStatus: Debug + Clone {
    /// The batch's id.
    fn get_id(&self) -> &str;

    /// Whether the ledger did not report a status.
    fn is_unknown(&self) -> bool;

    /// Whether the status is final.
    fn is_final(&self) -> bool {
        false
    }

    /// Whether the batch was executed and found valid, and is not committed yet.
    fn is_valid(&self) -> bool {
        false
    }

    /// Whether the batch is committed. The poller learns from it how long commits take.
    fn is_committed(&self) -> bool {
        false
    }
}

/// The minimum that the poller needs to ask for a batch.
pub trait BatchId: Debug + Clone + Sync + Send {
    /// The batch's id.
    fn get_id(&self) -> &str;

    /// The service that orders it.
    fn get_service_id(&self) -> &str;

    /// Whether it is held for an operator.
    fn is_held(&self) -> bool {
        false
    }
}

/// The largest limit with which a [`PendingBatchStore`] is read.
pub const LARGEST_PENDING_LIMIT: usize = i32::MAX as usize;

/// A store of batches whose statuses are polled.
///
/// Only the first method is required. A store that implements the others reads less.
pub trait PendingBatchStore: Send {
    /// The ids of its batches.
    type Id: BatchId;

    /// Up to `limit` pending batches: the least recently checked first, then in order of submission.
    /// If there are fewer, all of them.
    ///
    /// The monitor asks for more until it has all, so any order works if it is always the same. Its limits are at most
    /// [`LARGEST_PENDING_LIMIT`], so they can be converted to any integer type of a database.
    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Self::Id>>;

    /// Up to `limit` pending batches that are due at this time and pace. `None`: the store does not know which
    /// are due. The monitor then reads all pending batches, and keeps the pace by itself.
    fn get_due_batch_ids(
        &self,
        _now: Timestamp,
        _pace: PollPace,
        _limit: usize,
    ) -> BatchResult<Option<Vec<Self::Id>>> {
        Ok(None)
    }

    /// Up to `limit` pending batches of these services, due or not. `None`: the store is not read by service. The
    /// monitor then selects from all pending batches, which it keeps in memory for a short time.
    fn get_pending_batch_ids_of(
        &self,
        _service_ids: &[String],
        _limit: usize,
    ) -> BatchResult<Option<Vec<Self::Id>>> {
        Ok(None)
    }

    /// Records that the ledger was asked for these batches and reported nothing new, so that other
    /// batches come first the next time.
    fn mark_checked(&self, _batches: &[Self::Id]) -> BatchResult<()> {
        Ok(())
    }
}

/// How often a batch is polled: at first at the interval, and less often the longer the batch takes.
///
/// A monitor may poll earlier, such as when batches are usually committed. A stuck batch thus costs little, but is
/// never forgotten.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_core::{Timestamp, polling::PollPace};
///
/// let pace = PollPace { interval: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
/// assert_eq!(pace.next_check(at(0), None), at(1));
/// assert_eq!(pace.next_check(at(0), Some(at(100))), at(125));
/// assert_eq!(pace.next_check(at(0), Some(at(1_000))), at(1_060));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollPace {
    /// The shortest time between two polls of a batch.
    pub interval: Duration,
    /// The longest time between two polls of a batch.
    pub longest: Duration,
}

impl PollPace {
    /// The next poll comes after this fraction of the time from submission to the last poll.
    pub const PART: u32 = 4;

    /// The longest time between two requests to a node that does not answer, so that its return is noticed soon.
    pub fn outage_pause(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(4);
        self.longest.min(LONGEST).max(self.interval)
    }

    /// When to poll a batch that was submitted and last polled at these times.
    pub fn next_check(&self, submitted_at: Timestamp, checked_at: Option<Timestamp>) -> Timestamp {
        let last = checked_at.unwrap_or(submitted_at);
        last.plus(self.pause(last.since(submitted_at)))
    }

    /// How long to wait after a poll of a batch that was submitted this long before that poll.
    pub fn pause(&self, age: Duration) -> Duration {
        (age / Self::PART).min(self.longest).max(self.interval)
    }
}

/// Stores the statuses that a ledger reported.
#[cfg_attr(feature = "mocks", mockall::automock(type Status = crate::batches::StatusReport;))]
pub trait BatchUpdater: Send {
    /// The status type.
    type Status: BatchStatus;

    /// Stores the statuses of batches of one service.
    fn update_batch_statuses(&self, service_id: &str, batches: &[Self::Status]) -> BatchResult<()>;

    /// Stores the statuses of batches of several services, in one commit if the store can.
    fn update_groups(&self, groups: &[(String, Vec<Self::Status>)]) -> BatchResult<()> {
        groups.iter().try_for_each(|(id, batches)| self.update_batch_statuses(id, batches))
    }
}
