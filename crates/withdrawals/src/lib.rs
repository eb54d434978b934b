#![doc = include_str!("../README.md")]

mod ids;
#[cfg(feature = "mocks")]
pub mod mocks;
mod nonce;
mod nonce_use;
mod payment;
mod reward;
mod rules;
mod signing_store;
mod transaction;
mod withdrawal;
mod withdrawal_store;

pub use ids::{RewardId, ShortIdError, WithdrawalId};
pub use nonce::{AssignedNonce, NonceOutcome};
pub use nonce_use::{NonceUse, UnpaidWithdrawal, UnsettledNonce, UnsettledNonces};
pub use payment::Payment;
pub use reward::{Reward, RewardConflict};
pub use rules::WithdrawalRules;
pub use signing_store::{BatchAttempt, SignFn, SigningStore};
pub use transaction::{NewSignedTransaction, SignedTransaction};
pub use withdrawal::{Withdrawal, WithdrawalKind};
pub use withdrawal_store::{
    CancelOutcome, RetryOutcome, WithdrawalConflict, WithdrawalDetails, WithdrawalFilter,
    WithdrawalStore,
};
