use grid_batch_withdrawals::{Reward, RewardId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::Links;

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

impl RewardJson {
    pub(crate) fn new(reward: Reward, links: &Links<'_>) -> Self {
        Self {
            id: reward.id.to_string(),
            link: links.path(&reward_path(&reward.id)),
            pool: reward.pool,
            amount: reward.amount,
            once_per_member: reward.once_per_member,
            created_at: reward.created_at.rfc3339_micros(),
        }
    }
}
