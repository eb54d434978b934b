use grid_batch_withdrawals::{Reward, RewardId};

use crate::http::{Links, Time, json_types};

/// The path of a reward.
pub(crate) fn reward_path(id: &RewardId) -> String {
    format!("/rewards/{id}")
}

json_types! {
    /// A reward in an answer.
    pub(crate) struct RewardJson(reward: Reward, links: &Links<'_>) {
        id: String = reward.id.to_string(),
        pool: String = reward.pool,
        amount: String = reward.amount,
        once_per_member: bool = reward.once_per_member,
        created_at: Time = Time(reward.created_at),
        link: String = links.path(&reward_path(&reward.id)),
    }
}
