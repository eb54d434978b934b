use diesel::{
    NullableExpressionMethods, Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome};

use super::signed::{AccountNonce, Signed};
use crate::{StoreError, rows::time, schema::account_nonces};

/// The columns of a [`NonceRow`], from `account_nonces n`.
pub(crate) const NONCE_COLUMNS: &str = "n.service_id as account, n.nonce,
    n.generation as nonce_generation, n.taken_at, n.note, n.used_by, n.spent, n.pool_withdrawal_id";

/// The last nonce that was taken for `withdrawals w`, where it has one.
pub(crate) const WITH_NONCE: &str =
    "left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
         select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)";

/// A nonce that was taken, or none.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(crate) struct NonceRow {
    #[diesel(sql_type = Nullable<Text>, select_expression = account_nonces::service_id.nullable())]
    account: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>, select_expression = account_nonces::nonce.nullable())]
    nonce: Option<i64>,
    #[diesel(sql_type = Nullable<Integer>, select_expression = account_nonces::generation)]
    nonce_generation: Option<i32>,
    #[diesel(sql_type = Nullable<BigInt>, select_expression = account_nonces::taken_at.nullable())]
    taken_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    note: Option<String>,
    #[diesel(sql_type = Nullable<Binary>)]
    used_by: Option<Vec<u8>>,
    #[diesel(embed)]
    spent: SpentRow,
}

impl NonceRow {
    pub(crate) fn key(&self) -> Option<AccountNonce> {
        Some((self.account.clone()?, self.nonce?))
    }

    pub(crate) fn into_nonce(
        self,
        signed: &mut Signed,
    ) -> Result<Option<AssignedNonce>, StoreError> {
        let (Some(key), Some(generation), Some(taken_at)) =
            (self.key(), self.nonce_generation, time(self.taken_at))
        else {
            return Ok(None);
        };
        Ok(Some(AssignedNonce {
            nonce: whole(key.1)?,
            generation: u32::try_from(generation).map_err(StoreError::corrupt)?,
            taken_at,
            note: self.note,
            used_by: self.used_by.map(hash).transpose()?,
            spent: self.spent.read()?,
            transactions: signed.remove(&key).unwrap_or_default(),
        }))
    }
}

/// What became of a nonce.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(crate) struct SpentRow {
    #[diesel(sql_type = Nullable<Text>)]
    spent: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pool_withdrawal_id: Option<String>,
}

impl SpentRow {
    pub(super) fn read(self) -> Result<Option<NonceOutcome>, StoreError> {
        match (self.spent.as_deref(), self.pool_withdrawal_id) {
            (None, None) => Ok(None),
            (Some("WITHDRAWN"), Some(withdrawal_id)) => {
                Ok(Some(NonceOutcome::Withdrawn { withdrawal_id }))
            }
            (Some("REVERTED"), None) => Ok(Some(NonceOutcome::Reverted)),
            (Some("CANCELLED"), None) => Ok(Some(NonceOutcome::Cancelled)),
            (Some("ELSEWHERE"), None) => Ok(Some(NonceOutcome::UsedElsewhere)),
            (spent, _) => Err(StoreError::corrupt(format!("a nonce spent as {spent:?}"))),
        }
    }
}

/// The two columns of a [`SpentRow`].
pub(super) fn spent_columns(spent: &NonceOutcome) -> (&'static str, Option<&str>) {
    match spent {
        NonceOutcome::Withdrawn { withdrawal_id } => ("WITHDRAWN", Some(withdrawal_id)),
        NonceOutcome::Reverted => ("REVERTED", None),
        NonceOutcome::Cancelled => ("CANCELLED", None),
        NonceOutcome::UsedElsewhere => ("ELSEWHERE", None),
    }
}

pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32], StoreError> {
    let not_a_hash =
        |bytes: Vec<u8>| StoreError::corrupt(format!("a hash of {} bytes", bytes.len()));
    bytes.try_into().map_err(not_a_hash)
}

pub(super) fn whole(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(StoreError::corrupt)
}
