use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Text},
};
use grid_batch_core::{AddOutcome, Timestamp};
use grid_batch_withdrawals::{Reward, RewardConflict, RewardId};

use super::rows::reward_id;
use crate::sql::{Connection, Rows, Store, StoreError};

impl Store {
    /// Stores a reward. The same one again changes nothing, whenever it is said to have been made.
    pub fn add_reward(
        &self,
        reward: &Reward,
    ) -> Result<Result<AddOutcome, RewardConflict>, StoreError> {
        self.pools.write()?.transaction(|connection| {
            if self.insert_reward(connection, reward)? {
                return Ok(Ok(AddOutcome::Stored));
            }
            let stored = self
                .find_reward(connection, &reward.id)?
                .ok_or_else(|| StoreError::corrupt("a reward that cannot be found"))?;
            if stored.has_same_terms_as(reward) {
                return Ok(Ok(AddOutcome::AlreadyStored));
            }
            Ok(Err(RewardConflict { stored }))
        })
    }

    /// The reward of this id.
    pub fn reward(&self, id: &RewardId) -> Result<Option<Reward>, StoreError> {
        self.find_reward(&mut *self.pools.read()?, id)
    }

    /// Whether it was not there before.
    fn insert_reward(
        &self,
        connection: &mut Connection,
        reward: &Reward,
    ) -> Result<bool, StoreError> {
        let statement = self
            .statement(
                "-- insert_reward
                 insert into rewards (reward_id, pool, amount, once_per_member, created_at)
                 select reward_id, pool, amount, once_per_member, created_at from {x} where true
                 on conflict do nothing",
            )
            .rows(
                Rows::default()
                    .bytes("reward_id", [&reward.id.as_bytes()[..]])
                    .text("pool", [reward.pool.as_str()])
                    .text("amount", [reward.amount.as_str()])
                    .bool("once_per_member", [reward.once_per_member])
                    .long("created_at", [reward.created_at.as_micros()]),
            );
        Ok(connection.execute(&statement)? > 0)
    }

    fn find_reward(
        &self,
        connection: &mut Connection,
        id: &RewardId,
    ) -> Result<Option<Reward>, StoreError> {
        let statement = self
            .statement(
                "-- reward
                 select reward_id, pool, amount, once_per_member, created_at
                 from rewards where reward_id = ?",
            )
            .bytes(id.as_bytes());
        let rows: Vec<RewardRow> = connection.load(&statement)?;
        rows.into_iter().next().map(RewardRow::into_reward).transpose()
    }
}

#[derive(QueryableByName)]
struct RewardRow {
    #[diesel(sql_type = Binary)]
    reward_id: Vec<u8>,
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = Text)]
    amount: String,
    #[diesel(sql_type = Bool)]
    once_per_member: bool,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

impl RewardRow {
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
