use diesel::{
    Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_core::{DltStatus, Timestamp};
use grid_batch_withdrawals::{RewardId, Withdrawal, WithdrawalEnd, WithdrawalId};

use crate::sql::{
    StoreError,
    rows::{service_id, time},
    schema::withdrawals,
};

/// The columns of a [`WithdrawalRow`], from `withdrawals w`. None has the name of a batch's column.
pub(crate) const WITHDRAWAL_COLUMNS: &str = "w.seq as withdrawal_seq, w.withdrawal_id,
    w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
    w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state";

/// A withdrawal, without its batch.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = withdrawals)]
pub(crate) struct WithdrawalRow {
    #[diesel(sql_type = BigInt, select_expression = withdrawals::seq)]
    pub(crate) withdrawal_seq: i64,
    #[diesel(sql_type = Binary)]
    withdrawal_id: Vec<u8>,
    #[diesel(sql_type = Text, select_expression = withdrawals::service_id)]
    gas_admin: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Nullable<Binary>)]
    reward_id: Option<Vec<u8>>,
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = Text)]
    beneficiary: String,
    #[diesel(sql_type = Text)]
    amount: String,
    #[diesel(sql_type = Integer)]
    generation: i32,
    #[diesel(sql_type = BigInt, select_expression = withdrawals::created_at)]
    scheduled_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    cancelled_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    idempotency_key: Option<String>,
    #[diesel(sql_type = Text)]
    list_state: String,
}

impl WithdrawalRow {
    pub(crate) fn created_at(&self) -> Timestamp {
        Timestamp::from_micros(self.scheduled_at)
    }

    pub(crate) fn cancelled_at(&self) -> Option<Timestamp> {
        time(self.cancelled_at)
    }

    /// How the withdrawal ended, as far as is known.
    pub(crate) fn end(&self) -> Option<WithdrawalEnd> {
        match self.list_state.parse() {
            Ok(DltStatus::Committed) => Some(WithdrawalEnd::Withdrawn),
            Ok(DltStatus::Invalid) => Some(WithdrawalEnd::Failed),
            _ => None,
        }
    }

    pub(crate) fn generation(&self) -> Result<u32, StoreError> {
        u32::try_from(self.generation).map_err(StoreError::corrupt)
    }

    pub(crate) fn into_withdrawal(self) -> Result<Withdrawal, StoreError> {
        Ok(Withdrawal {
            id: withdrawal_id(&self.withdrawal_id)?,
            service_id: service_id(&self.gas_admin)?,
            kind: self.kind.parse().map_err(StoreError::corrupt)?,
            reward_id: self.reward_id.as_deref().map(reward_id).transpose()?,
            pool: self.pool,
            beneficiary: self.beneficiary,
            amount: self.amount,
            idempotency_key: self.idempotency_key,
        })
    }
}

pub(super) fn withdrawal_id(bytes: &[u8]) -> Result<WithdrawalId, StoreError> {
    WithdrawalId::try_from(bytes).map_err(StoreError::corrupt)
}

pub(super) fn reward_id(bytes: &[u8]) -> Result<RewardId, StoreError> {
    RewardId::try_from(bytes).map_err(StoreError::corrupt)
}

pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32], StoreError> {
    let not_a_hash =
        |bytes: Vec<u8>| StoreError::corrupt(format!("a hash of {} bytes", bytes.len()));
    bytes.try_into().map_err(not_a_hash)
}

pub(super) fn whole(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(StoreError::corrupt)
}
