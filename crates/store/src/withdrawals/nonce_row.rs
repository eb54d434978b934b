use diesel::{
    NullableExpressionMethods, Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_withdrawals::{AssignedNonce, FinalTransaction, NonceOutcome};

use super::{
    rows::{hash, whole},
    transactions::{AccountNonce, TransactionsByNonce},
};
use crate::sql::{StoreError, rows::time, schema::account_nonces};

/// The columns of a [`NonceRow`], from `account_nonces n`.
pub(crate) const NONCE_COLUMNS: &str = "n.service_id as account, n.nonce,
    n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
    n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price";

/// Joins the highest nonce that was assigned to `withdrawals w`, if there is one.
pub(crate) const WITH_NONCE: &str =
    "left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
         select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)";

/// The columns of a nonce, all null without one.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(crate) struct NonceRow {
    #[diesel(sql_type = Nullable<Text>, select_expression = account_nonces::service_id.nullable())]
    account: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>, select_expression = account_nonces::nonce.nullable())]
    nonce: Option<i64>,
    #[diesel(sql_type = Nullable<Integer>, select_expression = account_nonces::generation)]
    nonce_generation: Option<i32>,
    #[diesel(sql_type = Nullable<BigInt>, select_expression = account_nonces::assigned_at.nullable())]
    assigned_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    note: Option<String>,
    #[diesel(sql_type = Nullable<Binary>)]
    foreign_hash: Option<Vec<u8>>,
    #[diesel(embed)]
    outcome: OutcomeRow,
    #[diesel(sql_type = Nullable<Binary>)]
    mined_hash: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<BigInt>)]
    block_number: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    gas_used: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    gas_price: Option<i64>,
}

impl NonceRow {
    pub(crate) fn key(&self) -> Option<AccountNonce> {
        Some((self.account.clone()?, self.nonce?))
    }

    pub(crate) fn into_nonce(
        self,
        transactions: &mut TransactionsByNonce,
    ) -> Result<Option<AssignedNonce>, StoreError> {
        let (Some(key), Some(generation), Some(assigned_at)) =
            (self.key(), self.nonce_generation, time(self.assigned_at))
        else {
            return Ok(None);
        };
        let final_transaction = match self.mined_hash.zip(self.block_number) {
            Some((mined_hash, block)) => Some(FinalTransaction {
                hash: hash(mined_hash)?,
                block: whole(block)?,
                gas_used: self.gas_used.map(whole).transpose()?,
                gas_price: self.gas_price.map(whole).transpose()?.map(u128::from),
            }),
            None => None,
        };
        Ok(Some(AssignedNonce {
            nonce: whole(key.1)?,
            generation: u32::try_from(generation).map_err(StoreError::corrupt)?,
            assigned_at,
            note: self.note,
            foreign_hash: self.foreign_hash.map(hash).transpose()?,
            outcome: self.outcome.read()?,
            final_transaction,
            transactions: transactions.remove(&key).unwrap_or_default(),
        }))
    }
}

/// The outcome of a nonce.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(crate) struct OutcomeRow {
    #[diesel(sql_type = Nullable<Text>)]
    outcome: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pool_withdrawal_id: Option<String>,
}

impl OutcomeRow {
    pub(super) fn read(self) -> Result<Option<NonceOutcome>, StoreError> {
        match (self.outcome.as_deref(), self.pool_withdrawal_id.as_deref()) {
            (None, None) => Ok(None),
            (Some("WITHDRAWN"), Some("")) => Ok(Some(NonceOutcome::WithoutEvent)),
            (Some("WITHDRAWN"), Some(withdrawal_id)) => {
                let withdrawal_id = withdrawal_id.to_owned();
                Ok(Some(NonceOutcome::Withdrawn { withdrawal_id }))
            }
            (Some("REVERTED"), None) => Ok(Some(NonceOutcome::Reverted)),
            (Some("CANCELLED"), None) => Ok(Some(NonceOutcome::Cancelled)),
            (Some("USED_ELSEWHERE"), None) => Ok(Some(NonceOutcome::UsedElsewhere)),
            (outcome, _) => {
                Err(StoreError::corrupt(format!("a nonce with the outcome {outcome:?}")))
            }
        }
    }
}

/// The columns of an [`OutcomeRow`].
pub(super) fn outcome_columns(outcome: &NonceOutcome) -> (&'static str, Option<&str>) {
    match outcome {
        NonceOutcome::Withdrawn { withdrawal_id } => ("WITHDRAWN", Some(withdrawal_id)),
        // The id of a payment is not null in the table.
        NonceOutcome::WithoutEvent => ("WITHDRAWN", Some("")),
        NonceOutcome::Reverted => ("REVERTED", None),
        NonceOutcome::Cancelled => ("CANCELLED", None),
        NonceOutcome::UsedElsewhere => ("USED_ELSEWHERE", None),
    }
}
