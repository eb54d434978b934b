//! The ids of withdrawals and rewards. One that is derived is the same whenever it is asked for
//! anew, so a release must never derive another: the store holds each id once, and that is what
//! keeps a key, or a member, to one withdrawal.

use grid_batch_withdrawals::{RewardId, WithdrawalId};
use log::error;
use sha2::{Digest, Sha512};

use crate::error::ApiError;

type Id = [u8; 16];

/// The withdrawal from a pool that a client calls by this key.
pub(crate) fn of_key(pool: &str, key: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["withdrawal", pool, key]))
}

/// The payment of a reward that a client calls by this key.
pub(crate) fn of_reward_and_key(reward: &RewardId, key: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["reward", &reward.to_string(), key]))
}

/// The one payment of a reward that this member can have.
pub(crate) fn of_reward_and_member(reward: &RewardId, beneficiary: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["member", &reward.to_string(), beneficiary]))
}

/// The reward of a pool that a client calls by this key.
pub(crate) fn of_new_reward(pool: &str, key: &str) -> RewardId {
    RewardId::from_bytes(derive(&["new reward", pool, key]))
}

/// An id that nobody guesses, for what is called by no key.
pub(crate) fn random() -> Result<Id, ApiError> {
    let mut id = Id::default();
    getrandom::fill(&mut id).map_err(|error| {
        error!(error:%; "the machine gives no random numbers");
        ApiError::Internal
    })?;
    Ok(id)
}

/// Each part goes in with its length, so that no two lists of parts are the same bytes.
fn derive(parts: &[&str]) -> Id {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut id = Id::default();
    id.copy_from_slice(&hash.finalize()[..16]);
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const REWARD: RewardId = RewardId::from_bytes([7; 16]);

    #[test]
    fn what_is_called_by_a_key_has_the_same_id_in_every_release() {
        assert_eq!(of_key("0xpool", "key").to_string(), "2f88dec9feb311fa0c1ce7646ae799a6");
        assert_eq!(
            of_reward_and_key(&REWARD, "key").to_string(),
            "2fc9f87f7dd5a73e0ec2ed429fcd1967"
        );
        assert_eq!(
            of_reward_and_member(&REWARD, "0xmember").to_string(),
            "ac79fbe39a56cd03fc2fd91dfa9e893b"
        );
        assert_eq!(of_new_reward("0xpool", "key").to_string(), "fddaf96d91d3dd3b9d31b6ba4ea8f931");
    }

    #[test]
    fn what_is_called_otherwise_has_another_id() {
        let reward = REWARD.to_string();
        let ids = [
            of_key("a", "bc"),
            of_key("ab", "c"),
            of_key("", "abc"),
            of_key(&reward, "x"),
            of_reward_and_key(&REWARD, "x"),
            of_reward_and_member(&REWARD, "x"),
            WithdrawalId::from_bytes(random().unwrap()),
            WithdrawalId::from_bytes(random().unwrap()),
        ];
        assert_eq!(HashSet::from(ids).len(), ids.len());
    }
}
