//! `/withdrawals`, and what `/rewards` and `/v1/transactions` share with it.

mod context;
mod derived_ids;
mod error;
mod get;
mod idempotency_key;
mod json;
mod list;
mod operations;
mod queued;
mod retry_failed;
mod schedule;
mod undecided_nonces;
mod verbs;
mod waits_for;
mod writer;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use context::{WRITES, WithdrawalContext};
pub(crate) use derived_ids::{
    random_id, reward_id_from_key, transaction_id_from_key, withdrawal_id_from_reward_and_key,
    withdrawal_id_from_reward_and_member,
};
pub(crate) use error::WithdrawalRequestError;
pub(crate) use get::read_one;
pub(crate) use idempotency_key::idempotency_key;
pub(crate) use json::{
    FinalTransactionJson, TransactionJson, WithdrawalJson, fail_reason, gwei, signed_transactions,
};
pub(crate) use list::{PagePosition, QueuedPageJson, parse_before, parse_states, read_page};
pub(crate) use operations::{OperationAnswer, cancel_one, retry_one, speed_up_one};
pub(crate) use queued::{Queued, QueuedJson};
pub(crate) use schedule::{UniqueBy, enqueue, refuse_if_new, schedule};
pub(crate) use verbs::{QueuedVerb, possible_verbs};
pub(crate) use waits_for::{present_nonce, waits_for};
pub(crate) use writer::{WithdrawalGroupStore, WithdrawalQueue};

/// The routes of withdrawals.
pub(crate) fn routes() -> OpenApiRouter<Arc<WithdrawalContext>> {
    OpenApiRouter::new()
        .routes(routes!(list::get, schedule::post))
        .routes(routes!(retry_failed::post))
        .routes(routes!(get::get))
        .routes(routes!(operations::retry))
        .routes(routes!(operations::cancel))
        .routes(routes!(undecided_nonces::get))
}
