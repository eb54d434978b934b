//! The traits of core and of `grid-batch-withdrawals` for [`Store`].

use std::time::Duration;

use grid_batch_core::{
    ActionFilter, ActionOutcome, AddOutcome, Ahead, BatchConflict, BatchDetails, BatchEvent,
    BatchPage, BatchQueryStore, BatchResult, BatchSelection, CommitHistory, CommittedBefore,
    EventFilter, EventListener, EventPage, EventPosition, EventReadError, EventStore, HistoryFacts,
    InstanceId, InstanceLease, IntakeStore, ItemId, ItemIdPrefix, ListCursor, NewBatch,
    OperatorAction, OperatorStore, OperatorTarget, OwnedService, PageOrder, RecordedAction,
    Removed, RetentionCursor, RetentionStore, ServiceId, ServiceOverview, StoredBatch,
    SubmittedBatch, Timestamp,
};
use grid_batch_withdrawals::{
    BatchAttempt, CancelOutcome, ClosedNonce, FailedFilter, FailedWithdrawal, FollowingPayment,
    FollowingPayments, NewSignedTransaction, NonceOutcome, NonceUse, Payment, PaymentBudget,
    RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome, SignFn, SignedTransaction,
    SigningStore, UnpaidWithdrawal, UnsettledNonces, Withdrawal, WithdrawalConflict,
    WithdrawalDetails, WithdrawalFilter, WithdrawalId, WithdrawalStore,
};

use crate::{Store, events, operator, service_history, submission, withdrawals};

impl IntakeStore for Store {
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>> {
        Ok(Self::add(self, lists)?)
    }
}

impl BatchQueryStore for Store {
    fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find(self, batch_id)?)
    }

    fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find_by_prefix(self, prefix, service_id, limit)?)
    }

    fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        Ok(Self::find_by_transaction(self, transaction_id)?)
    }

    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<BatchDetails>> {
        Ok(Self::details(self, service_id, batch_id)?)
    }

    fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<u8>>> {
        Ok(Self::serialized_batch(self, service_id, batch_id)?)
    }

    fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> BatchResult<Vec<Option<Ahead>>> {
        Ok(Self::ahead(self, service_id, created_at)?)
    }

    fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        limit: usize,
    ) -> BatchResult<BatchPage> {
        Ok(Self::batch_page(self, selection, order, after, limit)?)
    }

    fn services(
        &self,
        with_idle: bool,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceOverview>> {
        Ok(operator::services(self, with_idle, after, limit)?)
    }

    fn service(&self, service_id: &ServiceId) -> BatchResult<Option<ServiceOverview>> {
        Ok(operator::service(self, service_id)?)
    }

    fn instances(&self) -> BatchResult<Vec<InstanceLease>> {
        Ok(operator::instances(self)?)
    }

    fn claims(
        &self,
        instance: Option<&InstanceId>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<OwnedService>> {
        Ok(operator::claims(self, instance, after, limit)?)
    }
}

impl OperatorStore for Store {
    fn act(&self, action: &OperatorAction) -> BatchResult<ActionOutcome> {
        Ok(Self::act(self, action)?)
    }

    fn actions(
        &self,
        filter: &ActionFilter,
        before: Option<i64>,
        limit: usize,
    ) -> BatchResult<Vec<RecordedAction>> {
        Ok(Self::actions(self, filter, before, limit)?)
    }

    fn being_sent(&self, target: &OperatorTarget) -> BatchResult<Vec<SubmittedBatch>> {
        Ok(Self::being_sent(self, target)?)
    }
}

impl EventStore for Store {
    fn events(
        &self,
        from: &EventPosition,
        filter: &EventFilter,
        limit: usize,
    ) -> BatchResult<Result<EventPage, EventReadError>> {
        Ok(events::read(self, from, filter, limit)?)
    }

    fn history(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<BatchEvent>>> {
        Ok(events::history(self, service_id, batch_id)?)
    }

    fn on_events(&self, listener: EventListener) {
        self.scheduler.events().listen(listener);
    }
}

impl CommitHistory for Store {
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<CommittedBefore> {
        Ok(submission::committed_before(self, service_id, batch_id)?)
    }

    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool> {
        Ok(submission::has_committed(self, service_id)?)
    }

    fn refuse_past_transactions(&self) {
        self.refuse_past_transactions();
    }

    fn read_history(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<HistoryFacts> {
        Ok(service_history::read_history(self, service_id, batch_id)?)
    }

    fn is_history_known(&self, service_id: &ServiceId) -> BatchResult<Option<bool>> {
        Ok(service_history::is_history_known(self, service_id)?)
    }

    fn set_history_known(&self, service_id: &ServiceId, is_known: bool) -> BatchResult<()> {
        Ok(service_history::set_history_known(self, service_id, is_known)?)
    }

    fn add_applied(&self, service_id: &ServiceId, transactions: &[ItemId]) -> BatchResult<()> {
        Ok(service_history::add_applied(self, service_id, transactions)?)
    }

    fn generation(&self) -> i64 {
        self.last_seen.get().restored_at.unwrap_or_default()
    }
}

impl RetentionStore for Store {
    fn start_retention(&self, interval: Duration) -> BatchResult<bool> {
        Ok(operator::start_retention(self, interval)?)
    }

    fn remove_ended_before(
        &self,
        age: Duration,
        from: Option<RetentionCursor>,
        limit: usize,
    ) -> BatchResult<Removed> {
        Ok(self.remove_ended(self.now().minus(age), from, limit)?)
    }
}

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
