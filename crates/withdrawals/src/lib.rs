#![doc = include_str!("../README.md")]

mod amount;
mod call;
mod following;
mod gas_admin_queue;
mod gas_monitor;
mod ids;
mod limited_sum;
#[cfg(feature = "mocks")]
pub mod mocks;
mod moving;
mod nonce;
mod nonce_use;
mod payment;
mod payment_limits;
mod retry_failed;
mod reward;
mod rules;
mod schedule;
mod signing_store;
mod transaction;
mod withdrawal;
mod withdrawal_state;
mod withdrawal_store;

pub use amount::{Amount, NotAnAmountError, in_unit};
pub use call::{Call, CallError, CallRequest, Decoded, FunctionCall, PayRequest};
pub use following::{ClosedNonce, FollowingPayment, FollowingPayments};
pub use gas_admin_queue::{GasAdminQueue, LastFailure, PoolSum};
pub use gas_monitor::{
    GasAdminAmounts, GasAdminState, GasHealth, GasMonitor, GasPoolState, LastRead,
};
pub use ids::{RewardId, ShortIdError, WithdrawalId, keep_latest_generation};
pub use limited_sum::{DayLimit, LimitedSum, Payer};
pub use moving::{MoveObstacle, MoveStep, OpenWithdrawal, OpenWithdrawals};
pub use nonce::{AssignedNonce, EventLog, FinalTransaction, NonceOutcome};
pub use nonce_use::{NonceUse, UnpaidWithdrawal, UnsettledNonce, UnsettledNonces};
pub use payment::{Payment, Terms};
pub use payment_limits::{
    PAYMENT_WINDOW, PAYMENT_WINDOW_STEP, PaymentBudget, PaymentLimitError, PaymentLimits,
};
pub use retry_failed::{FailedFilter, FailedWithdrawal, FailedWithdrawals};
pub use reward::{Reward, RewardConflict};
pub use rules::{CallRules, TokenRules, WithdrawalRules};
pub use schedule::{AheadCount, ScheduleOutcome, WithdrawalConflict};
pub use signing_store::{BatchAttempt, SignFn, SigningStore};
pub use transaction::{NewSignedTransaction, SignedTransaction};
pub use withdrawal::{Withdrawal, WithdrawalKind};
pub use withdrawal_state::{WithdrawalEnd, WithdrawalState};
pub use withdrawal_store::{
    CancelOutcome, RetryOutcome, SpeedUpOutcome, WithdrawalDetails, WithdrawalFilter,
    WithdrawalPage, WithdrawalStore, WithdrawalTexts,
};
