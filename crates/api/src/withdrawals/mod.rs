//! `/withdrawals`, and what `/rewards` shares with it.

mod allowed_beneficiary;
mod context;
mod derived_ids;
mod get;
mod idempotency_key;
mod json;
mod list;
mod operations;
mod retry_failed;
mod schedule;
mod waits_for;
mod writer;

use std::sync::Arc;

use axum::{Router, routing};

pub(crate) use context::WithdrawalContext;
pub(crate) use derived_ids::{
    random_id, reward_id_from_key, withdrawal_id_from_reward_and_key,
    withdrawal_id_from_reward_and_member,
};
pub(crate) use idempotency_key::{KEY_FIELD, take_idempotency_key};
pub(crate) use json::withdrawal_path;
pub(crate) use schedule::{UniqueBy, schedule};
pub(crate) use writer::{WithdrawalGroupStore, WithdrawalQueue};

/// The routes of withdrawals.
pub(crate) fn routes() -> Router<Arc<WithdrawalContext>> {
    Router::new()
        .route("/withdrawals", routing::get(list::get).post(schedule::post))
        .route("/withdrawals/retry", routing::post(retry_failed::post))
        .route("/withdrawals/{id}", routing::get(get::get))
        .route("/withdrawals/{id}/retry", routing::post(operations::retry))
        .route("/withdrawals/{id}/cancel", routing::post(operations::cancel))
}
