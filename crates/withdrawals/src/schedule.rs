use grid_batch_core::queue::Ahead;
use grid_batch_core::{ServiceId, Timestamp};
use thiserror::Error;

use crate::{PaymentLimitError, Withdrawal};

/// How a request to schedule a withdrawal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleOutcome {
    /// It is stored now, at the end of the queue of its gas admin.
    Stored {
        /// When it was stored. The withdrawals of a gas admin are made in this order.
        created_at: Timestamp,
        /// How many open batches of its gas admin come before it.
        ahead: u64,
    },
    /// It was stored before; nothing changed.
    AlreadyStored,
}

/// Why a withdrawal cannot be scheduled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WithdrawalConflict {
    /// A withdrawal with the same id and other contents is stored already.
    #[error(
        "the withdrawal {} is already stored with other contents: {} to {} from {}",
        .stored.id, .stored.amount, .stored.beneficiary, .stored.pool
    )]
    OtherTerms {
        /// The withdrawal that is stored.
        stored: Box<Withdrawal>,
    },
    /// The gas admin has reached its limit of open withdrawals.
    #[error(
        "the gas admin {service_id} has {open} open withdrawals and transactions, and may have {limit}; send \
         the request again when some of them have ended"
    )]
    QueueFull {
        /// The gas admin.
        service_id: ServiceId,
        /// The number of its open withdrawals.
        open: u64,
        /// How many it may have.
        limit: u64,
    },
    /// Another transaction of the database keeps the gas admin locked: try again later.
    #[error(
        "the gas admin {service_id} is locked in the database by another transaction; send the request \
         again"
    )]
    ServiceLocked {
        /// The gas admin.
        service_id: ServiceId,
    },
    /// A payment limit of its pool would be exceeded.
    #[error(transparent)]
    PaymentLimit(#[from] PaymentLimitError),
}

/// How many open batches of its gas admin come before a withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AheadCount {
    /// The number that was counted, at most [`Ahead::MAX_COUNTED`] when it was read again later.
    pub count: u64,
    /// Whether there are more than were counted.
    pub more: bool,
}

impl AheadCount {
    /// Exactly this many.
    pub const fn exactly(count: u64) -> Self {
        Self { count, more: false }
    }

    /// The count for this many found, when one more than the limit was searched for.
    pub const fn of_found(found: u64) -> Self {
        if found > Ahead::MAX_COUNTED {
            Self { count: Ahead::MAX_COUNTED, more: true }
        } else {
            Self::exactly(found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_stops_at_its_limit() {
        let limit = Ahead::MAX_COUNTED;
        assert_eq!(AheadCount::of_found(limit), AheadCount::exactly(limit));
        assert_eq!(AheadCount::of_found(limit + 1), AheadCount { count: limit, more: true });
    }
}
