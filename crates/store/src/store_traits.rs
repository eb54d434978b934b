//! The traits of `grid-batch-withdrawals` for [`Store`].

use grid_batch_core::{AddOutcome, BatchResult, ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    BatchAttempt, CancelOutcome, ClosedNonce, FailedFilter, FailedWithdrawal, FollowingPayment,
    FollowingPayments, NewSignedTransaction, NonceOutcome, NonceUse, Payment, PaymentBudget,
    RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome, SignFn, SignedTransaction,
    SigningStore, UnpaidWithdrawal, UnsettledNonces, Withdrawal, WithdrawalConflict,
    WithdrawalDetails, WithdrawalFilter, WithdrawalId, WithdrawalStore,
};

use crate::{Store, withdrawals};

impl WithdrawalStore for Store {
    fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> BatchResult<Vec<Result<ScheduleOutcome, WithdrawalConflict>>> {
        Ok(Self::schedule(self, withdrawals)?)
    }

    fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>> {
        Ok(Self::withdrawal(self, id)?)
    }

    fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<WithdrawalDetails>> {
        Ok(Self::withdrawals(self, filter, before, limit)?)
    }

    fn cancel_withdrawal(&self, id: &WithdrawalId) -> BatchResult<CancelOutcome> {
        Ok(Self::cancel_withdrawal(self, id)?)
    }

    fn failed_withdrawals(
        &self,
        filter: &FailedFilter,
        after: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<FailedWithdrawal>> {
        Ok(Self::failed_withdrawals(self, filter, after, limit)?)
    }

    fn payment_budget(&self) -> BatchResult<PaymentBudget> {
        Ok(Self::payment_budget(self)?)
    }

    fn retry_withdrawal(&self, id: &WithdrawalId) -> BatchResult<RetryOutcome> {
        Ok(Self::retry_withdrawal(self, id)?)
    }

    fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>> {
        Ok(Self::add_reward(self, reward)?)
    }

    fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>> {
        Ok(Self::reward(self, id)?)
    }
}

impl SigningStore for Store {
    fn payment(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<Option<Payment>> {
        Ok(withdrawals::payment(self, service_id, batch_id)?)
    }

    fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        withdrawals::assign_nonce(self, attempt, at_least, sign)
    }

    fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        Ok(withdrawals::replace_transaction(self, attempt, signed)?)
    }

    fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        withdrawals::fill_nonce(self, attempt, nonce, sign)
    }

    fn following_payments(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        count: usize,
    ) -> BatchResult<Option<FollowingPayments>> {
        Ok(withdrawals::following_payments(self, service_id, batch_id, count)?)
    }

    fn sign_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        Ok(withdrawals::sign_following(self, following, signed)?)
    }

    fn replace_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        Ok(withdrawals::replace_following(self, following, signed)?)
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        Ok(withdrawals::next_nonce(self, service_id)?)
    }

    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        Ok(withdrawals::transactions_from(self, service_id, nonce)?)
    }

    fn open_payments_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<FollowingPayment>> {
        Ok(withdrawals::open_payments_from(self, service_id, nonce)?)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        let sent = [(*hash, error.map(str::to_owned))];
        Ok(withdrawals::mark_sent(self, &sent)?)
    }

    fn mark_all_sent(&self, sent: &[([u8; 32], Option<String>)]) -> BatchResult<()> {
        Ok(withdrawals::mark_sent(self, sent)?)
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        Ok(withdrawals::note(self, service_id, nonce, note)?)
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        Ok(withdrawals::record_foreign_use(self, service_id, nonce, hash)?)
    }

    fn highest_block(&self) -> BatchResult<Option<u64>> {
        Ok(withdrawals::highest_block(self)?)
    }

    fn record_highest_block(&self, number: u64) -> BatchResult<()> {
        Ok(withdrawals::record_highest_block(self, number)?)
    }

    fn unsettled_nonces(&self, service_id: &ServiceId) -> BatchResult<UnsettledNonces> {
        Ok(withdrawals::unsettled_nonces(self, service_id)?)
    }

    fn unsettled_since(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        Ok(withdrawals::unsettled_since(self, service_id)?)
    }

    fn first_open(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        Ok(withdrawals::first_open(self, service_id)?)
    }

    fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>> {
        Ok(withdrawals::pools(self, service_id)?)
    }

    fn has_paid(&self, pool: &str) -> BatchResult<bool> {
        Ok(withdrawals::has_paid(self, pool)?)
    }

    fn unpaid_withdrawals(
        &self,
        service_id: &ServiceId,
        pool: &str,
        beneficiary: &str,
        amount: &str,
    ) -> BatchResult<Vec<UnpaidWithdrawal>> {
        Ok(withdrawals::unpaid_withdrawals(self, service_id, pool, beneficiary, amount)?)
    }

    fn settle_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: &NonceUse,
    ) -> BatchResult<bool> {
        Ok(withdrawals::settle_nonce(self, service_id, nonce, used_at, nonce_use)?)
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()> {
        Ok(withdrawals::close_nonce(self, service_id, nonce, outcome)?)
    }

    fn close_nonces(&self, service_id: &ServiceId, closed: &[ClosedNonce]) -> BatchResult<u64> {
        Ok(withdrawals::close_nonces(self, service_id, closed)?)
    }
}
