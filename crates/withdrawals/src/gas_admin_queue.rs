use grid_batch_core::{ServiceId, Timestamp};

use crate::{Amount, WithdrawalId};

/// The stored withdrawals of a gas admin that have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GasAdminQueue {
    /// The service that orders them.
    pub service_id: ServiceId,
    /// How many there are.
    pub open: u64,
    /// How many of them are next or only wait for earlier ones.
    pub waiting: u64,
    /// How many are being sent or were sent, including those sent before their turn.
    pub in_progress: u64,
    /// How many wait for a gate or for their next try.
    pub parked: u64,
    /// How many wait for an operator, including those before their turn.
    pub held: u64,
    /// When the oldest was scheduled.
    pub oldest_scheduled_at: Option<Timestamp>,
    /// The last error of the oldest, if its last attempt failed.
    pub last_error: Option<String>,
    /// The last failed withdrawal of each pool.
    pub last_failures: Vec<LastFailure>,
}

/// The last failed withdrawal of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// The pool.
    pub pool: String,
    /// The withdrawal. It may have been retried since.
    pub withdrawal_id: WithdrawalId,
    /// Why it failed, if the reason is still stored.
    pub reason: Option<String>,
    /// When it failed.
    pub failed_at: Timestamp,
}

/// The amounts that were scheduled from a pool in the last 24 hours, without withdrawals that have failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSum {
    /// The pool.
    pub pool: String,
    /// The sum of the amounts.
    pub amount: Amount,
}
