//! Withdrawals, rewards, and what is signed for withdrawals. Each withdrawal is tried by one batch
//! at a time, which goes through the same queue as any other.
//!
//! A transaction is stored before it is sent, so no withdrawal ever has two nonces with which it
//! could be paid. Signing locks the service, and so the account.

mod cancel;
mod close;
mod details;
mod failed;
mod following;
mod gas_admins;
mod heads;
mod highest_block;
mod list;
mod movable;
mod moving;
mod new_withdrawals;
mod nonce_actions;
mod nonce_row;
mod nonces;
mod open;
mod payment;
mod replace_following;
mod retry;
mod rewards;
mod rows;
mod schedule;
mod settle;
mod sign;
mod sign_following;
mod signed_ahead;
mod transactions;
mod unsettled;

use grid_batch_core::NewBatch;
use grid_batch_withdrawals::Withdrawal;

use crate::sql::error::SigningError;

pub(crate) use cancel::cancel_withdrawal;
pub(crate) use close::close_nonces;
pub(crate) use details::withdrawal;
pub(crate) use failed::failed_withdrawals;
pub(crate) use following::{following_payments, open_payments_from};
pub(crate) use gas_admins::{gas_admin_queues, payment_budget, pool_sums};
pub(crate) use highest_block::{highest_block, record_highest_block};
pub(crate) use list::withdrawals;
pub(crate) use nonces::{close_nonce, mark_sent, next_nonce, note, record_foreign_use};
pub(crate) use payment::payment;
pub(crate) use replace_following::replace_following;
pub(crate) use retry::retry_withdrawal;
pub(crate) use rewards::{add_reward, reward};
pub(crate) use schedule::schedule;
pub(crate) use settle::{decide_nonce, settle_nonce};
pub(crate) use sign::{assign_nonce, fill_nonce, replace_transaction};
pub(crate) use sign_following::sign_following;
pub(crate) use transactions::transactions_from;
pub(crate) use unsettled::{
    first_open, has_paid, pools, undecided_nonces, unpaid_withdrawals, unsettled_nonces,
    unsettled_since,
};

/// The batch that tries a withdrawal in this generation. Its bytes describe the payment; the
/// transaction is signed when the batch is submitted.
fn batch_of(withdrawal: &Withdrawal, generation: u32) -> NewBatch {
    let Withdrawal { pool, beneficiary, amount, .. } = withdrawal;
    NewBatch {
        service_id: withdrawal.service_id.clone(),
        batch_id: withdrawal.id.batch_id(generation),
        signer: None,
        transaction_ids: Vec::new(),
        serialized_batch: format!("{pool} {beneficiary} {amount}").into_bytes(),
        declared_access: None,
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
    }
}

/// A number as the databases store it.
fn to_stored(what: &'static str, value: impl Into<u128>) -> Result<i64, SigningError> {
    let value = value.into();
    i64::try_from(value).map_err(|_| SigningError::TooLarge { what, value })
}
