//! The transactions that were signed with the nonces of accounts.

use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{NewSignedTransaction, SignedTransaction};

use super::rows::{
    AccountNonce, SIGNED_COLUMNS, SignedRow, TransactionsByNonce, load_number, to_stored,
};
use crate::sql::{Connection, Rows, Statement, StoreError};

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
    let rows: Vec<SignedRow> = connection.load_rows(
        format!(
            "-- signed_transactions
             select {SIGNED_COLUMNS} from {{x}}
             join signed_transactions k on k.service_id = x.service_id and k.nonce = x.nonce
             order by k.service_id, k.nonce, k.position"
        ),
        Rows::default()
            .text("service_id", nonces.iter().map(|(account, _)| account.as_str()))
            .long("nonce", nonces.iter().map(|(_, nonce)| *nonce)),
    )?;
    let mut transactions = TransactionsByNonce::new();
    for row in rows {
        let key = (row.account.clone(), row.nonce);
        transactions.entry(key).or_default().push(row.into_transaction()?);
    }
    Ok(transactions)
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
    insert_all_stored(connection, service_id, &[(transaction.clone(), position)])?;
    Ok(transaction)
}

/// Stores transactions, each at its position among those with its nonce.
pub(super) fn insert_all_stored(
    connection: &mut Connection,
    service_id: &ServiceId,
    transactions: &[(SignedTransaction, usize)],
) -> Result<(), StoreError> {
    let rows: Vec<InsertedTransactionRow<'_>> = transactions
        .iter()
        .map(|(transaction, position)| InsertedTransactionRow::new(transaction, *position))
        .collect::<Result<_, _>>()?;
    let signed = || rows.iter().map(|row| &row.transaction.signed);
    connection.execute_rows(
        "-- insert_transaction
         insert into signed_transactions
             (service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted)
         select service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted
         from {x}",
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
    )
}

/// A transaction to insert, with its numbers as the databases store them.
struct InsertedTransactionRow<'a> {
    transaction: &'a SignedTransaction,
    nonce: i64,
    position: i64,
    max_fee: i64,
    tip: i64,
}

impl<'a> InsertedTransactionRow<'a> {
    fn new(transaction: &'a SignedTransaction, position: usize) -> Result<Self, StoreError> {
        let signed = &transaction.signed;
        Ok(Self {
            transaction,
            nonce: to_stored("nonce", signed.nonce)?,
            position: i64::try_from(position).map_err(StoreError::corrupt)?,
            max_fee: to_stored("fee", signed.max_fee)?,
            tip: to_stored("tip", signed.tip)?,
        })
    }
}

/// Removes the transactions that were signed for the previous owner of the nonce, because none of them can be mined any
/// more.
pub(super) fn remove_transactions(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- remove_transactions
         delete from signed_transactions where service_id = ? and nonce = ?",
    )
    .text(service_id.as_str())
    .long(nonce);
    connection.execute(&statement).map(drop)
}

pub(super) fn count_transactions(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<usize, StoreError> {
    let statement = Statement::new(
        "-- count_transactions
         select count(*) as number from signed_transactions k
         where k.service_id = ? and k.nonce = ?",
    )
    .text(service_id.as_str())
    .long(nonce);
    let count = load_number(connection, &statement)?.unwrap_or_default();
    usize::try_from(count).map_err(StoreError::corrupt)
}
