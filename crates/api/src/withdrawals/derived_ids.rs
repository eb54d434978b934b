//! The ids of withdrawals, rewards and transactions.
//!
//! Ids are derived from idempotency keys and members, and the store holds each id once: this is how a
//! repeated request finds what the first one stored. Therefore no release may change a derivation.

use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{RewardId, WithdrawalId};
use sha2::{Digest, Sha512};

use crate::http::{ApiError, random_failed};

type IdBytes = [u8; 16];

/// The id of a withdrawal from a pool with this idempotency key.
pub(crate) fn withdrawal_id_from_key(pool: &str, key: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["withdrawal", pool, key]))
}

/// The id of a withdrawal that pays a reward, with this idempotency key.
pub(crate) fn withdrawal_id_from_reward_and_key(reward: &RewardId, key: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["reward", &reward.to_string(), key]))
}

/// The id of the only withdrawal that pays a once-per-member reward to this member.
pub(crate) fn withdrawal_id_from_reward_and_member(
    reward: &RewardId,
    beneficiary: &str,
) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["member", &reward.to_string(), beneficiary]))
}

/// The id of a transaction of an account with this idempotency key.
pub(crate) fn transaction_id_from_key(account: &ServiceId, key: &str) -> WithdrawalId {
    WithdrawalId::from_bytes(derive(&["transaction", account.as_str(), key]))
}

/// The id of a reward of a pool with this idempotency key.
pub(crate) fn reward_id_from_key(pool: &str, key: &str) -> RewardId {
    RewardId::from_bytes(derive(&["new reward", pool, key]))
}

/// An unpredictable id, for requests without an idempotency key.
pub(crate) fn random_id() -> Result<IdBytes, ApiError> {
    let mut id = IdBytes::default();
    getrandom::fill(&mut id).map_err(random_failed)?;
    Ok(id)
}

/// Hashes each part with its length, so that different lists of parts are different bytes.
fn derive(parts: &[&str]) -> IdBytes {
    let mut hash = Sha512::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut id = IdBytes::default();
    id.copy_from_slice(&hash.finalize()[..16]);
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const REWARD: RewardId = RewardId::from_bytes([7; 16]);

    #[test]
    fn derived_ids_are_the_same_in_every_release() {
        assert_eq!(
            withdrawal_id_from_key("0xpool", "key").to_string(),
            "2f88dec9feb311fa0c1ce7646ae799a6"
        );
        assert_eq!(
            withdrawal_id_from_reward_and_key(&REWARD, "key").to_string(),
            "2fc9f87f7dd5a73e0ec2ed429fcd1967"
        );
        assert_eq!(
            withdrawal_id_from_reward_and_member(&REWARD, "0xmember").to_string(),
            "ac79fbe39a56cd03fc2fd91dfa9e893b"
        );
        assert_eq!(
            reward_id_from_key("0xpool", "key").to_string(),
            "fddaf96d91d3dd3b9d31b6ba4ea8f931"
        );
        let account = "eip155:1:0xad".parse().unwrap();
        assert_eq!(
            transaction_id_from_key(&account, "key").to_string(),
            "e0dfcaeb58d9d87091f9331c2059c92b"
        );
    }

    #[test]
    fn different_inputs_have_different_ids() {
        let reward = REWARD.to_string();
        let ids = [
            transaction_id_from_key(&"a".parse().unwrap(), "bc"),
            withdrawal_id_from_key("a", "bc"),
            withdrawal_id_from_key("ab", "c"),
            withdrawal_id_from_key("", "abc"),
            withdrawal_id_from_key(&reward, "x"),
            withdrawal_id_from_reward_and_key(&REWARD, "x"),
            withdrawal_id_from_reward_and_member(&REWARD, "x"),
            WithdrawalId::from_bytes(random_id().unwrap()),
            WithdrawalId::from_bytes(random_id().unwrap()),
        ];
        assert_eq!(HashSet::from(ids).len(), ids.len());
    }
}
