//! `/withdrawals`, and what `/rewards` shares with it.

mod context;
mod derived_ids;
mod error;
mod get;
mod idempotency_key;
mod json;
mod list;
mod operations;
mod retry_failed;
mod schedule;
mod undecided_nonces;
mod waits_for;
mod writer;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use context::{WRITES, WithdrawalContext};
pub(crate) use derived_ids::{
    random_id, reward_id_from_key, withdrawal_id_from_reward_and_key,
    withdrawal_id_from_reward_and_member,
};
pub(crate) use error::WithdrawalRequestError;
pub(crate) use idempotency_key::idempotency_key;
pub(crate) use json::{WithdrawalJson, withdrawal_path};
pub(crate) use schedule::{UniqueBy, schedule};
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
