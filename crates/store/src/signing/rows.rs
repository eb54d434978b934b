use diesel::{
    NullableExpressionMethods, Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome};

use super::signed::{AccountNonce, TransactionsByNonce, hash, to_u64};
use crate::{StoreError, rows::time, schema::account_nonces};

/// The columns of a [`NonceRow`], from `account_nonces n`.
pub(crate) const NONCE_COLUMNS: &str = "n.service_id as account, n.nonce,
    n.generation as nonce_generation, n.taken_at, n.note, n.used_by, n.spent, n.pool_withdrawal_id";

/// The last nonce that was assigned to `withdrawals w`, if any.
pub(crate) const WITH_NONCE: &str =
    "left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
         select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)";

/// An assigned nonce; all columns are null if there is none.
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
    outcome: OutcomeRow,
}

impl NonceRow {
    pub(crate) fn key(&self) -> Option<AccountNonce> {
        Some((self.account.clone()?, self.nonce?))
    }

    pub(crate) fn into_nonce(
        self,
        signed: &mut TransactionsByNonce,
    ) -> Result<Option<AssignedNonce>, StoreError> {
        let (Some(key), Some(generation), Some(taken_at)) =
            (self.key(), self.nonce_generation, time(self.taken_at))
        else {
            return Ok(None);
        };
        Ok(Some(AssignedNonce {
            nonce: to_u64(key.1)?,
            generation: u32::try_from(generation).map_err(StoreError::corrupt)?,
            assigned_at: taken_at,
            note: self.note,
            foreign_hash: self.used_by.map(hash).transpose()?,
            outcome: self.outcome.read()?,
            transactions: signed.remove(&key).unwrap_or_default(),
        }))
    }
}

/// The final outcome of a nonce.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(crate) struct OutcomeRow {
    #[diesel(sql_type = Nullable<Text>)]
    spent: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pool_withdrawal_id: Option<String>,
}

impl OutcomeRow {
    pub(super) fn read(self) -> Result<Option<NonceOutcome>, StoreError> {
        match (self.spent.as_deref(), self.pool_withdrawal_id) {
            (None, None) => Ok(None),
            (Some("WITHDRAWN"), Some(withdrawal_id)) => {
                Ok(Some(NonceOutcome::Withdrawn { withdrawal_id }))
            }
            (Some("REVERTED"), None) => Ok(Some(NonceOutcome::Reverted)),
            (Some("CANCELLED"), None) => Ok(Some(NonceOutcome::Cancelled)),
            (Some("ELSEWHERE"), None) => Ok(Some(NonceOutcome::UsedElsewhere)),
            (outcome, _) => Err(StoreError::corrupt(format!("nonce outcome {outcome:?}"))),
        }
    }
}

/// The two columns of a [`OutcomeRow`].
pub(super) fn outcome_columns(outcome: &NonceOutcome) -> (&'static str, Option<&str>) {
    match outcome {
        NonceOutcome::Withdrawn { withdrawal_id } => ("WITHDRAWN", Some(withdrawal_id)),
        NonceOutcome::Reverted => ("REVERTED", None),
        NonceOutcome::Cancelled => ("CANCELLED", None),
        NonceOutcome::UsedElsewhere => ("ELSEWHERE", None),
    }
}
