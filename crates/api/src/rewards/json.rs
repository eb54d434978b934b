use axum::http::request::Parts;
use grid_batch_withdrawals::{Reward, RewardId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::link, withdrawals::WithdrawalContext};

/// A reward in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RewardJson {
    id: String,
    pool: String,
    amount: String,
    once_per_member: bool,
    created_at: String,
    link: String,
}

/// The path of a reward.
pub(crate) fn reward_path(id: &RewardId) -> String {
    format!("/rewards/{id}")
}

/// A reward in an answer to `request`.
pub(crate) fn reward_json(
    context: &WithdrawalContext,
    request: &Parts,
    reward: Reward,
) -> RewardJson {
    RewardJson {
        id: reward.id.to_string(),
        link: link::to_path(&reward_path(&reward.id), request, context.api.local_addr),
        pool: reward.pool,
        amount: reward.amount,
        once_per_member: reward.once_per_member,
        created_at: reward.created_at.rfc3339_micros(),
    }
}
