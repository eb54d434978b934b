//! `mockall` mocks of every trait, for tests of the layers above.

use grid_batch_core::batches::AddOutcome;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::{BatchResult, ItemId, ServiceId, Timestamp};
use mockall::mock;

use crate::{
    BatchAttempt, CancelOutcome, FailedFilter, FailedWithdrawal, FollowingPayment,
    FollowingPayments, NewSignedTransaction, NonceOutcome, NonceUse, Payment, PaymentBudget,
    RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome, SignFn, SignedTransaction,
    SigningStore, SpeedUpOutcome, Terms, UnpaidWithdrawal, UnsettledNonce, UnsettledNonces,
    Withdrawal, WithdrawalConflict, WithdrawalDetails, WithdrawalFilter, WithdrawalId,
    WithdrawalPage, WithdrawalStore,
};

pub use crate::{
    gas_monitor::MockGasMonitor,
    rules::{MockCallRules, MockWithdrawalRules},
};

// The arguments of both have references inside of other types, whose lifetimes `automock` needs to have names.

mock! {
    pub SigningStore {}
    impl SigningStore for SigningStore {
        fn payment(&self, service_id: &ServiceId, batch_id: &ItemId)
            -> BatchResult<Option<Payment>>;
        fn assign_nonce<'a>(&self, attempt: &BatchAttempt, at_least: u64, sign: &mut SignFn<'a>)
            -> BatchResult<Option<SignedTransaction>>;
        fn replace_transaction(&self, attempt: &BatchAttempt, signed: NewSignedTransaction)
            -> BatchResult<Option<SignedTransaction>>;
        fn fill_nonce<'a>(&self, attempt: &BatchAttempt, nonce: u64, sign: &mut SignFn<'a>)
            -> BatchResult<Option<SignedTransaction>>;
        fn following_payments(&self, service_id: &ServiceId, batch_id: &ItemId, count: usize)
            -> BatchResult<Option<FollowingPayments>>;
        fn replace_following(&self, following: &FollowingPayments, signed: Vec<NewSignedTransaction>)
            -> BatchResult<bool>;
        fn sign_following(&self, following: &FollowingPayments, signed: Vec<NewSignedTransaction>)
            -> BatchResult<bool>;
        fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>>;
        fn transactions_from(&self, service_id: &ServiceId, nonce: u64) -> BatchResult<Vec<NewSignedTransaction>>;
        fn open_payments_from(&self, service_id: &ServiceId, nonce: u64) -> BatchResult<Vec<FollowingPayment>>;
        fn mark_sent<'a>(&self, hash: &[u8; 32], error: Option<&'a str>) -> BatchResult<()>;
        fn note<'a>(&self, service_id: &ServiceId, nonce: u64, note: Option<&'a str>)
            -> BatchResult<()>;
        fn record_foreign_use(&self, service_id: &ServiceId, nonce: u64, hash: &[u8; 32]) -> BatchResult<()>;
        fn close_nonce(&self, service_id: &ServiceId, nonce: u64, outcome: &NonceOutcome) -> BatchResult<()>;
        fn highest_block(&self) -> BatchResult<Option<u64>>;
        fn record_highest_block(&self, number: u64) -> BatchResult<()>;
        fn unsettled_nonces(&self, service_id: &ServiceId) -> BatchResult<UnsettledNonces>;
        fn first_open(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>>;
        fn unsettled_since(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>>;
        fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>>;
        fn has_paid(&self, pool: &str) -> BatchResult<bool>;
        fn unpaid_withdrawals(&self, service_id: &ServiceId, terms: &Terms)
            -> BatchResult<Vec<UnpaidWithdrawal>>;
        fn settle_nonce(&self, service_id: &ServiceId, nonce: u64, used_at: Timestamp, nonce_use: &NonceUse) -> BatchResult<bool>;
    }
}

mock! {
    pub WithdrawalStore {}
    impl WithdrawalStore for WithdrawalStore {
        fn schedule(&self, withdrawals: &[Withdrawal])
            -> BatchResult<Vec<Result<ScheduleOutcome, WithdrawalConflict>>>;
        fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>>;
        fn undecided_nonces(&self) -> BatchResult<Vec<(ServiceId, UnsettledNonce)>>;
        fn withdrawals<'a>(
            &self,
            filter: &WithdrawalFilter,
            before: Option<&'a WithdrawalId>,
            limit: usize,
        ) -> BatchResult<WithdrawalPage>;
        fn cancel_withdrawal(
            &self,
            id: &WithdrawalId,
            request: &OperatorRequest,
        ) -> BatchResult<CancelOutcome>;
        fn speed_up_withdrawal(
            &self,
            id: &WithdrawalId,
            request: &OperatorRequest,
        ) -> BatchResult<SpeedUpOutcome>;
        fn failed_withdrawals<'a>(
            &self,
            filter: &FailedFilter,
            after: Option<&'a WithdrawalId>,
            limit: usize,
        ) -> BatchResult<Vec<FailedWithdrawal>>;
        fn payment_budget(&self) -> BatchResult<PaymentBudget>;
        fn retry_withdrawal(
            &self,
            id: &WithdrawalId,
            request: &OperatorRequest,
        ) -> BatchResult<RetryOutcome>;
        fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>>;
        fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>>;
    }
}
