use diesel::prelude::*;
use grid_batch_core::{AddOutcome, Timestamp};
use grid_batch_withdrawals::{Reward, RewardConflict, RewardId};

use super::rows::reward_id;
use crate::sql::{Connection, Rows, Statement, Store, StoreError, schema::rewards};

pub(crate) fn add_reward(
    store: &Store,
    reward: &Reward,
) -> Result<Result<AddOutcome, RewardConflict>, StoreError> {
    store.pools.write()?.write_transaction(|connection| {
        if insert_reward(connection, reward)? {
            return Ok(Ok(AddOutcome::Stored));
        }
        let stored = find_reward(connection, &reward.id)?
            .ok_or_else(|| StoreError::corrupt("a reward that cannot be found"))?;
        if stored.has_same_terms_as(reward) {
            return Ok(Ok(AddOutcome::AlreadyStored));
        }
        Ok(Err(RewardConflict { stored }))
    })
}

pub(crate) fn reward(store: &Store, id: &RewardId) -> Result<Option<Reward>, StoreError> {
    find_reward(&mut *store.pools.read()?, id)
}

/// Returns whether the reward is new.
fn insert_reward(connection: &mut Connection, reward: &Reward) -> Result<bool, StoreError> {
    let rows = Rows::default()
        .bytes("reward_id", [&reward.id.as_bytes()[..]])
        .text("pool", [reward.pool.as_str()])
        .text("amount", [reward.amount.as_str()])
        .bool("once_per_member", [reward.once_per_member])
        .long("created_at", [reward.created_at.as_micros()]);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_reward
         insert into rewards (reward_id, pool, amount, once_per_member, created_at)
         select x.reward_id, x.pool, x.amount, x.once_per_member, x.created_at from {x} where true
         on conflict do nothing",
    )
    .rows(rows);
    Ok(connection.execute(&statement)? > 0)
}

fn find_reward(connection: &mut Connection, id: &RewardId) -> Result<Option<Reward>, StoreError> {
    let query = rewards::table.find(&id.as_bytes()[..]).select(RewardRecord::as_select());
    let records = connection.load_query("reward", query)?;
    records.into_iter().next().map(RewardRecord::into_reward).transpose()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rewards)]
struct RewardRecord {
    reward_id: Vec<u8>,
    pool: String,
    amount: String,
    once_per_member: bool,
    created_at: i64,
}

impl RewardRecord {
    fn into_reward(self) -> Result<Reward, StoreError> {
        Ok(Reward {
            id: reward_id(&self.reward_id)?,
            pool: self.pool,
            amount: self.amount,
            once_per_member: self.once_per_member,
            created_at: Timestamp::from_micros(self.created_at),
        })
    }
}
