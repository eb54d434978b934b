use grid_batch_core::batches::AddOutcome;
use grid_batch_withdrawals::{Reward, RewardId, WithdrawalStore};

use crate::fixture::{Database, on_both};

on_both! {
    reward_is_stored_unchanged,
    same_reward_is_stored_once_and_other_terms_conflict,
}

fn reward(db: &Database) -> Reward {
    Reward {
        id: RewardId::from_bytes([5; 16]),
        pool: "0xpool".to_owned(),
        amount: "100".to_owned(),
        once_per_member: true,
        created_at: db.now(),
    }
}

fn reward_is_stored_unchanged(db: &Database) {
    let store = db.open();
    assert_eq!(store.reward(&reward(db).id).unwrap(), None);
    for reward in [
        reward(db),
        Reward { id: RewardId::from_bytes([6; 16]), once_per_member: false, ..reward(db) },
    ] {
        assert_eq!(store.add_reward(&reward).unwrap(), Ok(AddOutcome::Stored));
        assert_eq!(store.reward(&reward.id).unwrap(), Some(reward));
    }
}

fn same_reward_is_stored_once_and_other_terms_conflict(db: &Database) {
    let store = db.open();
    let first = reward(db);
    store.add_reward(&first).unwrap().unwrap();
    let later = Reward { created_at: db.later(1), ..first.clone() };
    assert_eq!(store.add_reward(&later).unwrap(), Ok(AddOutcome::AlreadyStored));
    for other in [
        Reward { amount: "101".to_owned(), ..first.clone() },
        Reward { pool: "0xother".to_owned(), ..first.clone() },
        Reward { once_per_member: false, ..first.clone() },
    ] {
        assert_eq!(store.add_reward(&other).unwrap().unwrap_err().stored, first);
    }
    assert_eq!(store.reward(&first.id).unwrap(), Some(first));
}
