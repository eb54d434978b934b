//! The methods of [`Store`] for withdrawals.

use grid_batch_core::{AddOutcome, ServiceId};
use grid_batch_withdrawals::{
    CancelOutcome, FailedFilter, FailedWithdrawal, GasAdminQueue, PaymentBudget, PoolSum,
    RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome, UnsettledNonce, Withdrawal,
    WithdrawalConflict, WithdrawalDetails, WithdrawalFilter, WithdrawalId,
};

use crate::{Store, StoreError, withdrawals};

impl Store {
    /// Stores withdrawals, each with its first batch, all in one commit, except those whose id
    /// another withdrawal has. The batches are queued as [`add`](grid_batch_core::IntakeStore::add) does.
    ///
    /// There is at most one withdrawal with an id, however many requests come at once. If the id is
    /// derived from what may be paid only once, no other lock is needed.
    ///
    /// ```no_run
    /// # use grid_batch_withdrawals::{ScheduleOutcome, Withdrawal};
    /// # fn example(store: grid_batch_store::Store, withdrawal: Withdrawal) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcome in store.schedule(&[withdrawal])? {
    ///     match outcome? {
    ///         ScheduleOutcome::Stored { ahead, .. } => println!("scheduled behind {ahead} others"),
    ///         ScheduleOutcome::AlreadyStored => println!("was scheduled before, and is paid once"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> Result<Vec<Result<ScheduleOutcome, WithdrawalConflict>>, StoreError> {
        withdrawals::schedule(self, withdrawals)
    }

    /// Requests that a withdrawal is cancelled, if that is still possible. The end of its batch
    /// shows whether it was.
    pub fn cancel_withdrawal(&self, id: &WithdrawalId) -> Result<CancelOutcome, StoreError> {
        withdrawals::cancel_withdrawal(self, id)
    }

    /// Retries a failed withdrawal with another batch. Of two requests at the same time, one starts
    /// the retry.
    ///
    /// While a transaction of an earlier generation may be paid, no other is signed.
    pub fn retry_withdrawal(&self, id: &WithdrawalId) -> Result<RetryOutcome, StoreError> {
        withdrawals::retry_withdrawal(self, id)
    }

    /// The open withdrawals of these gas admins, and what failed last.
    pub fn gas_admin_queues(
        &self,
        services: &[ServiceId],
    ) -> Result<Vec<GasAdminQueue>, StoreError> {
        withdrawals::gas_admin_queues(self, services)
    }

    /// What was scheduled from each of these pools in the last 24 hours.
    pub fn pool_sums(&self, pools: &[&str]) -> Result<Vec<PoolSum>, StoreError> {
        withdrawals::pool_sums(self, pools)
    }

    /// What the payment limits leave now.
    pub fn payment_budget(&self) -> Result<PaymentBudget, StoreError> {
        withdrawals::payment_budget(self)
    }

    /// One page of failed withdrawals, in the order in which they were scheduled: those after this one.
    /// What the filter says about the reason is left to [`FailedFilter::find`].
    pub fn failed_withdrawals(
        &self,
        filter: &FailedFilter,
        after: Option<&WithdrawalId>,
        limit: usize,
    ) -> Result<Vec<FailedWithdrawal>, StoreError> {
        withdrawals::failed_withdrawals(self, filter, after, limit)
    }

    /// The nonces of which it cannot be decided what the chain used them for, with the reason.
    pub fn undecided_nonces(&self) -> Result<Vec<(ServiceId, UnsettledNonce)>, StoreError> {
        withdrawals::undecided_nonces(self)
    }

    /// Records an operator's decision about an undecided nonce: it was used for this withdrawal. `false`: it is
    /// not undecided, or the withdrawal cannot have been paid with it.
    pub fn decide_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        paid: &WithdrawalId,
    ) -> Result<bool, StoreError> {
        withdrawals::decide_nonce(self, service_id, nonce, paid)
    }

    /// Everything that is stored about a withdrawal.
    pub fn withdrawal(&self, id: &WithdrawalId) -> Result<Option<WithdrawalDetails>, StoreError> {
        withdrawals::withdrawal(self, id)
    }

    /// One page of withdrawals, the newest first: those that are older than `before`. No withdrawal
    /// is older than one that is not stored.
    ///
    /// The cost of a page grows with the number of withdrawals that it shows, and, where the filter
    /// names more than one of pool, service, reward and beneficiary, with the number that it skips.
    pub fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        count: usize,
    ) -> Result<Vec<WithdrawalDetails>, StoreError> {
        withdrawals::withdrawals(self, filter, before, count)
    }

    /// Stores a reward. A reward with the same id and terms is not stored again, even when its
    /// `created_at` differs.
    pub fn add_reward(
        &self,
        reward: &Reward,
    ) -> Result<Result<AddOutcome, RewardConflict>, StoreError> {
        withdrawals::add_reward(self, reward)
    }

    /// The reward with this id.
    pub fn reward(&self, id: &RewardId) -> Result<Option<Reward>, StoreError> {
        withdrawals::reward(self, id)
    }
}
