//! The rows of withdrawals, of the nonces of accounts, and of signed transactions.

use std::collections::HashMap;

use diesel::{
    NullableExpressionMethods, Queryable, QueryableByName, Selectable,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::DltStatus;
use grid_batch_withdrawals::{
    AssignedNonce, FinalTransaction, NewSignedTransaction, NonceOutcome, Payment, RewardId,
    SignedTransaction, Withdrawal, WithdrawalEnd, WithdrawalId,
};
use serde::{Serialize, de::DeserializeOwned};

use super::schema::{account_nonces, withdrawals};
use crate::sql::{
    Connection, Statement, StoreError,
    error::SigningError,
    result_row,
    rows::{service_id, time},
};

/// The columns of a [`WithdrawalRow`], from `withdrawals w`. None of them has the name of a column of batches.
pub(super) const WITHDRAWAL_COLUMNS: &str = "w.seq as withdrawal_seq, w.withdrawal_id,
    w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
    w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state, w.call,
    w.speed_up_at";

/// A withdrawal, without its batch.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = withdrawals)]
pub(super) struct WithdrawalRow {
    #[diesel(sql_type = BigInt, select_expression = withdrawals::seq)]
    pub(super) withdrawal_seq: i64,
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
    #[diesel(sql_type = Nullable<Text>)]
    call: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    speed_up_at: Option<i64>,
}

impl WithdrawalRow {
    pub(super) fn created_at(&self) -> Timestamp {
        Timestamp::from_micros(self.scheduled_at)
    }

    pub(super) fn cancelled_at(&self) -> Option<Timestamp> {
        time(self.cancelled_at)
    }

    /// How the withdrawal ended, if it is known.
    pub(super) fn end(&self) -> Option<WithdrawalEnd> {
        match self.list_state.parse() {
            Ok(DltStatus::Committed) => Some(WithdrawalEnd::Withdrawn),
            Ok(DltStatus::Invalid) => Some(WithdrawalEnd::Failed),
            _ => None,
        }
    }

    pub(super) fn generation(&self) -> Result<u32, StoreError> {
        u32::try_from(self.generation).map_err(StoreError::corrupt)
    }

    pub(super) fn into_withdrawal(self) -> Result<Withdrawal, StoreError> {
        Ok(Withdrawal {
            id: withdrawal_id(&self.withdrawal_id)?,
            service_id: service_id(&self.gas_admin)?,
            kind: self.kind.parse().map_err(StoreError::corrupt)?,
            reward_id: self.reward_id.as_deref().map(reward_id).transpose()?,
            pool: self.pool,
            beneficiary: self.beneficiary,
            amount: self.amount,
            idempotency_key: self.idempotency_key,
            call: self.call.as_deref().map(read_json).transpose()?,
            trace: None,
        })
    }
}

/// A value that is stored as JSON.
pub(super) fn read_json<T: DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(StoreError::corrupt)
}

/// A value as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::corrupt)
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

/// A number as the databases store it.
pub(super) fn to_stored(what: &'static str, value: impl Into<u128>) -> Result<i64, StoreError> {
    let value = value.into();
    i64::try_from(value).map_err(|_| SigningError::TooLarge { what, value }.into())
}

/// The columns of a [`NonceRow`], from `account_nonces n`.
pub(super) const NONCE_COLUMNS: &str = "n.service_id as account, n.nonce,
    n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
    n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price, n.logs";

/// Joins the highest nonce that was assigned to `withdrawals w`, if there is one.
pub(super) const WITH_NONCE: &str =
    "left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
         select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)";

/// The columns of a nonce, which are all null if there is none.
#[derive(QueryableByName, Queryable, Selectable)]
#[diesel(table_name = account_nonces)]
pub(super) struct NonceRow {
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
    #[diesel(sql_type = Nullable<Text>)]
    logs: Option<String>,
}

impl NonceRow {
    pub(super) fn key(&self) -> Option<AccountNonce> {
        Some((self.account.clone()?, self.nonce?))
    }

    pub(super) fn into_nonce(
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
                logs: self.logs.as_deref().map_or(Ok(Vec::new()), read_json)?,
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
pub(super) struct OutcomeRow {
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
            (Some("WITHDRAWN"), Some(EXECUTED)) => {
                Ok(Some(NonceOutcome::Executed { contract: None }))
            }
            (Some("WITHDRAWN"), Some(contract)) if contract.starts_with("0x") => {
                Ok(Some(NonceOutcome::Executed { contract: Some(contract.to_owned()) }))
            }
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

/// Stands in the place of a withdrawal's id for a call that created no contract.
const EXECUTED: &str = "executed";

/// The columns of an [`OutcomeRow`].
pub(super) fn outcome_columns(outcome: &NonceOutcome) -> (&'static str, Option<&str>) {
    match outcome {
        NonceOutcome::Withdrawn { withdrawal_id } => ("WITHDRAWN", Some(withdrawal_id)),
        // The table requires that this id is not null. A call has none, but may create a contract.
        NonceOutcome::Executed { contract } => {
            ("WITHDRAWN", Some(contract.as_deref().unwrap_or(EXECUTED)))
        }
        NonceOutcome::WithoutEvent => ("WITHDRAWN", Some("")),
        NonceOutcome::Reverted => ("REVERTED", None),
        NonceOutcome::Cancelled => ("CANCELLED", None),
        NonceOutcome::UsedElsewhere => ("USED_ELSEWHERE", None),
    }
}

/// The service of an account, and a nonce.
pub(super) type AccountNonce = (String, i64);

/// The transactions that were signed with each nonce, in order.
pub(super) type TransactionsByNonce = HashMap<AccountNonce, Vec<SignedTransaction>>;

/// The columns of a [`SignedRow`], from `signed_transactions k`.
pub(super) const SIGNED_COLUMNS: &str = "k.service_id as account, k.nonce, k.hash, k.bytes,
    k.max_fee, k.tip, k.is_filler, k.signed_at, k.sent_at, k.last_error, k.adopted";

result_row! {
    pub(super) struct SignedRow {
        pub(super) account: String,
        pub(super) nonce: i64,
        hash: Vec<u8>,
        bytes: Vec<u8>,
        max_fee: i64,
        tip: i64,
        is_filler: bool,
        signed_at: i64,
        sent_at: Option<i64>,
        last_error: Option<String>,
        adopted: bool,
    }
}

impl SignedRow {
    pub(super) fn into_transaction(self) -> Result<SignedTransaction, StoreError> {
        Ok(SignedTransaction {
            signed: NewSignedTransaction {
                nonce: whole(self.nonce)?,
                hash: hash(self.hash)?,
                bytes: self.bytes,
                max_fee: whole(self.max_fee)?.into(),
                tip: whole(self.tip)?.into(),
                is_filler: self.is_filler,
            },
            signed_at: Timestamp::from_micros(self.signed_at),
            sent_at: time(self.sent_at),
            last_error: self.last_error,
            adopted: self.adopted,
        })
    }
}

/// Whether `batches b` was stored before the database was restored.
pub(super) const IS_RESTORED: &str = "coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored";

/// A payment and the `seq` of its withdrawal.
pub(super) struct StoredPayment {
    pub(super) withdrawal_seq: i64,
    pub(super) payment: Payment,
}

result_row! {
    /// A withdrawal with its highest nonce.
    pub(super) struct PaymentRow {
        is_restored: bool,
        #[diesel(embed)]
        withdrawal: WithdrawalRow,
        #[diesel(embed)]
        nonce: NonceRow,
    }
}

impl PaymentRow {
    pub(super) fn nonce_key(&self) -> Option<AccountNonce> {
        self.nonce.key()
    }

    pub(super) fn into_stored(
        self,
        transactions: &mut TransactionsByNonce,
    ) -> Result<StoredPayment, StoreError> {
        let Self { withdrawal, nonce, is_restored } = self;
        let generation = withdrawal.generation()?;
        let cancel_requested = withdrawal.cancelled_at().is_some();
        let speed_up_at = time(withdrawal.speed_up_at);
        let withdrawal_seq = withdrawal.withdrawal_seq;
        let withdrawal = withdrawal.into_withdrawal()?;
        let latest = nonce.into_nonce(transactions)?;
        let payment = Payment {
            withdrawal_id: withdrawal.id,
            generation,
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            call: withdrawal.call,
            cancel_requested,
            speed_up_at,
            is_restored,
            nonce: latest.filter(|nonce| counts(nonce, generation)),
        };
        Ok(StoredPayment { withdrawal_seq, payment })
    }
}

/// Whether a nonce counts in this generation. A nonce that paid nothing does not count in the next one.
fn counts(nonce: &AssignedNonce, generation: u32) -> bool {
    may_be_paid(nonce) || nonce.generation == generation
}

/// Whether the withdrawal was paid, or may still be paid, with this nonce.
pub(super) fn may_be_paid(nonce: &AssignedNonce) -> bool {
    matches!(
        nonce.outcome,
        None | Some(
            NonceOutcome::Withdrawn { .. }
                | NonceOutcome::Executed { .. }
                | NonceOutcome::WithoutEvent
        )
    )
}

/// The first number that a statement selects as `number`.
pub(super) fn load_number(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<Option<i64>, StoreError> {
    Ok(connection.load_column::<Option<i64>>(statement)?.into_iter().flatten().next())
}
