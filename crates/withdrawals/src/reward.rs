use grid_batch_core::Timestamp;
use thiserror::Error;

use crate::RewardId;

/// What a pool pays to its members. A withdrawal pays it to each member who claims it or is given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reward {
    /// Its id.
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
    /// Whether both have the same terms, whatever their ids and times of creation.
    pub fn has_same_terms_as(&self, other: &Self) -> bool {
        *self == Self { id: self.id, created_at: self.created_at, ..other.clone() }
    }
}

/// A reward with the same id and other contents is stored already.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the reward {} is another one already: {} from {}", stored.id, stored.amount, stored.pool)]
pub struct RewardConflict {
    /// The reward that is stored.
    pub stored: Reward,
}
