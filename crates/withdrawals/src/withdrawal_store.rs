use grid_batch_core::{AddOutcome, BatchResult, BatchState, ServiceId, StoredBatch, Timestamp};
use thiserror::Error;

use crate::{AssignedNonce, Reward, RewardConflict, RewardId, Withdrawal, WithdrawalId};

/// Everything that is stored about one withdrawal.
///
/// The state of its batch says whether the withdrawal has ended. When it is committed, the nonce has
/// the pool's id, except where an operator decided that it was paid. When it is invalid, there is a
/// reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawalDetails {
    /// The withdrawal.
    pub withdrawal: Withdrawal,
    /// When it was scheduled.
    pub created_at: Timestamp,
    /// How often it was started: 1 plus the number of retries.
    pub generation: u32,
    /// When cancelling it was first requested.
    pub cancelled_at: Option<Timestamp>,
    /// The batch of the present generation.
    pub batch: StoredBatch,
    /// How many open batches of its service come before it. Lists leave it out.
    pub ahead: Option<u64>,
    /// The last nonce that it was assigned, in any generation.
    pub nonce: Option<AssignedNonce>,
    /// Why it failed, if it did.
    pub fail_reason: Option<String>,
}

/// A withdrawal with the same id and other contents is stored already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the withdrawal {} is already stored with other contents: {} to {} from {}",
    stored.id, stored.amount, stored.beneficiary, stored.pool
)]
pub struct WithdrawalConflict {
    /// The withdrawal that is stored.
    pub stored: Box<Withdrawal>,
}

/// How a request to cancel a withdrawal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The request is stored. If nothing was signed yet, nothing will be; otherwise the chain
    /// decides which of two transactions is mined.
    Requested {
        /// The state of its batch.
        state: BatchState,
    },
    /// The withdrawal has ended; nothing changed.
    AlreadyEnded {
        /// The state of its batch.
        state: BatchState,
    },
    /// There is no such withdrawal.
    NotFound,
}

/// How a request to retry a withdrawal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOutcome {
    /// It is at the end of the queue, and no longer cancelled.
    Scheduled {
        /// Its new generation.
        generation: u32,
    },
    /// It has not failed, or was retried a moment ago; nothing changed.
    NotFailed {
        /// The state of its batch.
        state: BatchState,
    },
    /// There is no such withdrawal.
    NotFound,
}

/// Selects withdrawals. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithdrawalFilter {
    /// Only withdrawals from this pool.
    pub pool: Option<String>,
    /// Only withdrawals of this service.
    pub service_id: Option<ServiceId>,
    /// Only withdrawals that pay this reward.
    pub reward_id: Option<RewardId>,
    /// Only withdrawals to this beneficiary.
    pub beneficiary: Option<String>,
    /// Only withdrawals that have ended, or only those that have not.
    pub ended: Option<bool>,
}

/// Stores and reads withdrawals and rewards. Its methods block.
pub trait WithdrawalStore: Send + Sync {
    /// Stores withdrawals in one commit, except those that conflict with a stored one.
    fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> BatchResult<Vec<Result<AddOutcome, WithdrawalConflict>>>;

    /// Everything that is stored about a withdrawal.
    fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>>;

    /// One page of withdrawals, the newest first, older than `before`.
    fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<WithdrawalDetails>>;

    /// Requests that a withdrawal be cancelled.
    fn cancel_withdrawal(&self, id: &WithdrawalId) -> BatchResult<CancelOutcome>;

    /// Schedules a failed withdrawal again, with a new batch.
    fn retry_withdrawal(&self, id: &WithdrawalId) -> BatchResult<RetryOutcome>;

    /// Stores a reward. Storing the same reward again changes nothing.
    fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>>;

    /// The reward with this id.
    fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>>;
}
