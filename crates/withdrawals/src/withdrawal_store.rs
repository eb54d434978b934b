use std::collections::BTreeSet;

use grid_batch_core::batches::{AddOutcome, BatchState, StoredBatch};
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{BatchResult, ServiceId, Timestamp};

use crate::{
    AheadCount, AssignedNonce, FailedFilter, FailedWithdrawal, NonceOutcome, PaymentBudget,
    PaymentLimitError, Reward, RewardConflict, RewardId, ScheduleOutcome, UnsettledNonce,
    Withdrawal, WithdrawalConflict, WithdrawalEnd, WithdrawalId, WithdrawalState,
};

/// Everything that is stored about one withdrawal.
///
/// The state of its batch says whether the withdrawal has ended. If it is committed, the nonce has the pool's id,
/// unless an operator decided that it was paid. If it is invalid, there is a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawalDetails {
    /// The withdrawal.
    pub withdrawal: Withdrawal,
    /// When it was scheduled.
    pub created_at: Timestamp,
    /// How often it was started: 1 plus the number of retries.
    pub generation: u32,
    /// When its cancellation was first requested.
    pub cancelled_at: Option<Timestamp>,
    /// The batch of the present generation.
    pub batch: StoredBatch,
    /// How many open batches of its service come before it. Lists leave it out.
    pub ahead: Option<AheadCount>,
    /// The last nonce that was assigned to it, in any generation.
    pub nonce: Option<AssignedNonce>,
    /// Why it failed, or why an operator decided that its batch is invalid.
    pub fail_reason: Option<String>,
    /// How it ended. `None`: it has not ended, or its end is not known.
    pub end: Option<WithdrawalEnd>,
}

impl WithdrawalDetails {
    /// Whether it was signed and sent before its turn.
    pub fn is_signed_ahead(&self) -> bool {
        let counts = |nonce: &AssignedNonce| {
            nonce.generation == self.generation
                && nonce.outcome != Some(NonceOutcome::UsedElsewhere)
                && nonce.transactions.iter().any(|transaction| transaction.sent_at.is_some())
        };
        self.batch.progress.state == BatchState::New && self.nonce.as_ref().is_some_and(counts)
    }

    /// A withdrawal that was scheduled just now.
    pub fn scheduled(withdrawal: Withdrawal, created_at: Timestamp, ahead: u64) -> Self {
        const FIRST_GENERATION: u32 = 1;
        let batch = StoredBatch::new(
            withdrawal.service_id.clone(),
            withdrawal.id.batch_id(FIRST_GENERATION),
            created_at,
        );
        Self {
            withdrawal,
            created_at,
            generation: FIRST_GENERATION,
            cancelled_at: None,
            batch,
            ahead: Some(AheadCount::exactly(ahead)),
            nonce: None,
            fail_reason: None,
            end: None,
        }
    }
}

impl WithdrawalDetails {
    /// Whether nodes have its transaction, which is neither mined nor to be cancelled.
    pub fn waits_to_be_mined(&self) -> bool {
        let is_sent = |nonce: &AssignedNonce| {
            nonce.outcome.is_none() && nonce.best().is_some_and(|best| best.sent_at.is_some())
        };
        let state = self.batch.progress.state;
        !state.is_terminal()
            && state != BatchState::Valid
            && self.cancelled_at.is_none()
            && self.nonce.as_ref().is_some_and(is_sent)
    }
}

/// How a request to cancel a withdrawal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The request is stored. If nothing was signed yet, nothing will be signed; otherwise the chain decides which of
    /// two transactions is mined.
    Requested {
        /// The state of its batch.
        state: BatchState,
    },
    /// The batch has ended; nothing changed.
    AlreadyEnded {
        /// Its state.
        state: WithdrawalState,
    },
    /// There is no such withdrawal.
    NotFound,
}

/// How a request to raise the fees of a withdrawal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedUpOutcome {
    /// The request is stored. The fees are raised as far as the highest gas price allows.
    Requested,
    /// It has no transaction that is not mined; nothing changed.
    NotSent {
        /// Its state.
        state: WithdrawalState,
    },
    /// There is no such withdrawal.
    NotFound,
}

/// How a request to retry a withdrawal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryOutcome {
    /// It is at the end of the queue, and its cancellation is revoked.
    Scheduled {
        /// Its new generation.
        generation: u32,
    },
    /// It has not failed, or was retried a moment ago; nothing changed.
    NotFailed {
        /// Its state.
        state: WithdrawalState,
    },
    /// A payment limit of its pool would be exceeded; nothing changed.
    PaymentLimit(PaymentLimitError),
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
    /// Only withdrawals that were requested with this idempotency key.
    pub idempotency_key: Option<String>,
    /// Whether calls are selected. Otherwise withdrawals from pools are.
    pub calls: bool,
    /// Only withdrawals in one of these states. Empty: in any state.
    pub states: BTreeSet<WithdrawalState>,
    /// Only withdrawals whose texts contain these.
    pub contains: WithdrawalTexts,
}

/// Texts of a withdrawal by which it is listed, or parts of them. The default is a part of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithdrawalTexts {
    /// Its service.
    pub service_id: Option<String>,
    /// The pool that pays.
    pub pool: Option<String>,
    /// The account that is paid or called.
    pub beneficiary: Option<String>,
    /// The idempotency key of the request.
    pub idempotency_key: Option<String>,
    /// The label of its batch.
    pub label: Option<String>,
}

impl WithdrawalTexts {
    /// Whether each of these parts is contained in the same text. The letters of addresses have no case.
    pub fn contain(&self, parts: &Self) -> bool {
        let has = |text: &Option<String>, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.as_ref().is_some_and(|text| text.contains(part)))
        };
        let lower = |text: &Option<String>| text.as_ref().map(|text| text.to_ascii_lowercase());
        let has_address = |text, part| has(&lower(text), &lower(part));
        has_address(&self.service_id, &parts.service_id)
            && has_address(&self.pool, &parts.pool)
            && has_address(&self.beneficiary, &parts.beneficiary)
            && has(&self.idempotency_key, &parts.idempotency_key)
            && has(&self.label, &parts.label)
    }
}

/// A page of withdrawals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WithdrawalPage {
    /// The withdrawals, the newest first.
    pub withdrawals: Vec<WithdrawalDetails>,
    /// The next page is before this one; `None` after the last page. A page that is not the last may have fewer
    /// withdrawals than requested, or even none, because only a limited number of them is examined for each page.
    pub next: Option<WithdrawalId>,
}

/// Stores and reads withdrawals and rewards. Its methods block.
pub trait WithdrawalStore: Send + Sync {
    /// Stores withdrawals in the order of the slice, in one commit unless a service is locked. Leaves out those that
    /// conflict with a stored one or exceed a limit.
    fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> BatchResult<Vec<Result<ScheduleOutcome, WithdrawalConflict>>>;

    /// Everything that is stored about a withdrawal.
    fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>>;

    /// The nonces for which it cannot be decided what the chain used them for, with the reasons, by service.
    fn undecided_nonces(&self) -> BatchResult<Vec<(ServiceId, UnsettledNonce)>>;

    /// One page of withdrawals, the newest first, older than `before`.
    fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<WithdrawalPage>;

    /// Requests that a withdrawal be cancelled.
    fn cancel_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<CancelOutcome>;

    /// Requests that the fees of a withdrawal that was sent be raised now.
    fn speed_up_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<SpeedUpOutcome>;

    /// One page of failed withdrawals after this one, in the order in which they were scheduled. It ignores the text
    /// that reasons must contain, which [`FailedFilter::find`] checks.
    fn failed_withdrawals(
        &self,
        filter: &FailedFilter,
        after: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<FailedWithdrawal>>;

    /// What the payment limits leave now.
    fn payment_budget(&self) -> BatchResult<PaymentBudget>;

    /// Schedules a failed withdrawal again, with a new batch.
    fn retry_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<RetryOutcome>;

    /// Stores a reward. Storing the same reward again changes nothing.
    fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>>;

    /// The reward with this id.
    fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>>;
}
