use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{NewSignedTransaction, SignedTransaction};

use super::{
    rows::{hash, whole},
    to_stored,
};
use crate::sql::{Connection, Rows, Statement, Store, StoreError, rows::time};

/// The service of an account, and a nonce.
pub(crate) type AccountNonce = (String, i64);

/// The transactions that were signed with each nonce, in order.
pub(crate) type TransactionsByNonce = HashMap<AccountNonce, Vec<SignedTransaction>>;

/// The columns of a [`SignedRow`], from `signed_transactions k`.
const SIGNED_COLUMNS: &str = "k.service_id as account, k.nonce, k.hash, k.bytes,
    k.max_fee, k.tip, k.is_filler, k.signed_at, k.sent_at, k.last_error, k.adopted";

/// Joins the current batch of the withdrawal of `account_nonces n`.
pub(super) const WITH_CURRENT_BATCH: &str = "left join withdrawals w on w.seq = n.withdrawal_seq
    left join batches b on b.seq = w.batch_seq";

/// The condition that a payment with the nonce was made or may still be made.
pub(super) const MAY_PAY: &str = "(coalesce(n.outcome, '') = 'WITHDRAWN' or
    (n.outcome is null and b.seq is not null and b.dlt_status is distinct from 'INVALID'))";

/// The transactions that were signed with these nonces.
pub(super) fn signed_transactions(
    connection: &mut Connection,
    nonces: &[AccountNonce],
) -> Result<TransactionsByNonce, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- signed_transactions
             select {SIGNED_COLUMNS} from {{x}}
             join signed_transactions k on k.service_id = x.service_id and k.nonce = x.nonce
             order by k.service_id, k.nonce, k.position"
        ),
    )
    .rows(
        Rows::default()
            .text("service_id", nonces.iter().map(|(account, _)| account.as_str()))
            .long("nonce", nonces.iter().map(|(_, nonce)| *nonce)),
    );
    let rows: Vec<SignedRow> = connection.load(&statement)?;
    let mut transactions = TransactionsByNonce::new();
    for row in rows {
        let key = (row.account.clone(), row.nonce);
        transactions.entry(key).or_default().push(row.into_transaction()?);
    }
    Ok(transactions)
}

/// The transaction to send with each nonce of an account from this one on: a filler if there is one,
/// or else the payment with the highest fee.
///
/// Payments that were reported as failed are left out: if the chain has forgotten that they failed,
/// they could be paid, perhaps in addition to another one.
pub(crate) fn transactions_from(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
) -> Result<Vec<NewSignedTransaction>, StoreError> {
    let statement = store
        .statement(format!(
            "-- transactions_from
             select {SIGNED_COLUMNS}
             from account_nonces n
             join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
             {WITH_CURRENT_BATCH}
             where n.service_id = ? and n.nonce >= ?
                 and k.position = (
                     select o.position from signed_transactions o
                     where o.service_id = n.service_id and o.nonce = n.nonce
                     order by o.is_filler desc, o.max_fee desc, o.position desc limit 1)
                 and (k.is_filler or {MAY_PAY})
             order by n.service_id, n.nonce"
        ))
        .text(service_id.as_str())
        .long(to_stored("nonce", nonce)?);
    let rows: Vec<SignedRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().map(|row| Ok(row.into_transaction()?.signed)).collect()
}

/// Stores a transaction at this position among those with its nonce.
pub(super) fn insert_transaction(
    connection: &mut Connection,
    service_id: &ServiceId,
    signed: NewSignedTransaction,
    position: usize,
    signed_at: Timestamp,
) -> Result<SignedTransaction, StoreError> {
    let transaction = SignedTransaction::new(signed, signed_at);
    insert_stored(connection, service_id, &transaction, position)?;
    Ok(transaction)
}

/// Stores a transaction, signed here or adopted, at this position among those with its nonce.
pub(super) fn insert_stored(
    connection: &mut Connection,
    service_id: &ServiceId,
    transaction: &SignedTransaction,
    position: usize,
) -> Result<(), StoreError> {
    insert_all_stored(connection, service_id, &[(transaction.clone(), position)])
}

/// Stores transactions, each at its position among those with its nonce.
pub(super) fn insert_all_stored(
    connection: &mut Connection,
    service_id: &ServiceId,
    transactions: &[(SignedTransaction, usize)],
) -> Result<(), StoreError> {
    let rows: Vec<InsertedRow<'_>> =
        transactions.iter().map(InsertedRow::new).collect::<Result<_, StoreError>>()?;
    let signed = || rows.iter().map(|row| &row.transaction.signed);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_transaction
         insert into signed_transactions
             (service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted)
         select service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted
         from {x}",
    )
    .rows(
        Rows::default()
            .text("service_id", rows.iter().map(|_| service_id.as_str()))
            .long("nonce", rows.iter().map(|row| row.nonce))
            .long("position", rows.iter().map(|row| row.position))
            .bytes("hash", signed().map(|signed| &signed.hash[..]))
            .bytes("bytes", signed().map(|signed| &signed.bytes[..]))
            .long("max_fee", rows.iter().map(|row| row.max_fee))
            .long("tip", rows.iter().map(|row| row.tip))
            .bool("is_filler", signed().map(|signed| signed.is_filler))
            .long("signed_at", rows.iter().map(|row| row.transaction.signed_at.as_micros()))
            .bool("adopted", rows.iter().map(|row| row.transaction.adopted)),
    );
    connection.execute(&statement).map(drop)
}

/// A transaction to insert, with its numbers as the databases store them.
struct InsertedRow<'a> {
    transaction: &'a SignedTransaction,
    nonce: i64,
    position: i64,
    max_fee: i64,
    tip: i64,
}

impl<'a> InsertedRow<'a> {
    fn new((transaction, position): &'a (SignedTransaction, usize)) -> Result<Self, StoreError> {
        let signed = &transaction.signed;
        Ok(Self {
            transaction,
            nonce: to_stored("nonce", signed.nonce)?,
            position: i64::try_from(*position).map_err(StoreError::corrupt)?,
            max_fee: to_stored("fee", signed.max_fee)?,
            tip: to_stored("tip", signed.tip)?,
        })
    }
}

#[derive(QueryableByName)]
struct SignedRow {
    #[diesel(sql_type = Text)]
    account: String,
    #[diesel(sql_type = BigInt)]
    nonce: i64,
    #[diesel(sql_type = Binary)]
    hash: Vec<u8>,
    #[diesel(sql_type = Binary)]
    bytes: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    max_fee: i64,
    #[diesel(sql_type = BigInt)]
    tip: i64,
    #[diesel(sql_type = Bool)]
    is_filler: bool,
    #[diesel(sql_type = BigInt)]
    signed_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    sent_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
    #[diesel(sql_type = Bool)]
    adopted: bool,
}

impl SignedRow {
    fn into_transaction(self) -> Result<SignedTransaction, StoreError> {
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
