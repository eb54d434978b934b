use grid_batch_core::Timestamp;
use thiserror::Error;

use crate::RewardId;

/// An amount that a pool pays to its members, with one withdrawal for each member who claims it or to whom it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reward {
    /// The id of the reward.
    pub id: RewardId,
    /// The address of the pool that pays.
    pub pool: String,
    /// The amount, in the smallest unit.
    pub amount: String,
    /// Whether a member gets it only once.
    pub once_per_member: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl Reward {
    /// Whether both have the same terms. Their ids and creation times are not compared.
    pub fn has_same_terms_as(&self, other: &Self) -> bool {
        *self == Self { id: self.id, created_at: self.created_at, ..other.clone() }
    }
}

/// A reward with the same id and other terms is stored already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the reward {} is already stored with other terms: {} from {}", stored.id, stored.amount, stored.pool)]
pub struct RewardConflict {
    /// The reward that is stored.
    pub stored: Reward,
}
