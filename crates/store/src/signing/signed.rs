use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{NewSignedTransaction, SignedTransaction};

use super::error::to_stored;
use crate::{Store, StoreError, connection::Connection, rows::time, statement::Rows};

/// The columns of a [`TransactionRow`], from `signed_transactions k`.
pub(super) const TRANSACTION_COLUMNS: &str = "k.service_id as account, k.nonce, k.hash, k.bytes,
    k.max_fee, k.tip, k.cancels, k.signed_at, k.sent_at, k.last_error";

/// A nonce of an account.
pub(crate) type AccountNonce = (String, i64);

/// The signed transactions of each nonce, the oldest first.
pub(crate) type TransactionsByNonce = HashMap<AccountNonce, Vec<SignedTransaction>>;

impl Store {
    /// The signed transactions of these nonces.
    pub(crate) fn load_transactions(
        &self,
        connection: &mut Connection,
        nonces: &[AccountNonce],
    ) -> Result<TransactionsByNonce, StoreError> {
        let statement = self
            .statement(format!(
                "-- load_transactions
                 select {TRANSACTION_COLUMNS} from {{x}}
                 join signed_transactions k on k.service_id = x.service_id and k.nonce = x.nonce
                 order by k.service_id, k.nonce, k.position"
            ))
            .rows(
                Rows::default()
                    .text("service_id", nonces.iter().map(|(account, _)| account.as_str()))
                    .long("nonce", nonces.iter().map(|(_, nonce)| *nonce)),
            );
        let rows: Vec<TransactionRow> = connection.load(&statement)?;
        let mut signed = TransactionsByNonce::new();
        for row in rows {
            let key = (row.account.clone(), row.nonce);
            signed.entry(key).or_default().push(row.into_transaction()?);
        }
        Ok(signed)
    }

    /// Stores a transaction at this position among those with its nonce.
    pub(super) fn insert_transaction(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        signed: NewSignedTransaction,
        position: usize,
    ) -> Result<SignedTransaction, StoreError> {
        let signed_at = self.now();
        let position = i64::try_from(position).map_err(StoreError::corrupt)?;
        let statement = self
            .statement(
                "-- insert_transaction
                 insert into signed_transactions
                     (service_id, nonce, position, hash, bytes, max_fee, tip, cancels, signed_at)
                 select service_id, nonce, position, hash, bytes, max_fee, tip, cancels, signed_at
                 from {x}",
            )
            .rows(
                Rows::default()
                    .text("service_id", [service_id.as_str()])
                    .long("nonce", [to_stored("nonce", signed.nonce)?])
                    .long("position", [position])
                    .bytes("hash", [&signed.hash[..]])
                    .bytes("bytes", [&signed.bytes[..]])
                    .long("max_fee", [to_stored("fee", signed.max_fee)?])
                    .long("tip", [to_stored("tip", signed.tip)?])
                    .bool("cancels", [signed.is_filler])
                    .long("signed_at", [signed_at.as_micros()]),
            );
        connection.execute(&statement)?;
        Ok(SignedTransaction { signed, signed_at, sent_at: None, last_error: None })
    }
}

/// A row of `signed_transactions`.
#[derive(QueryableByName)]
pub(super) struct TransactionRow {
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
    cancels: bool,
    #[diesel(sql_type = BigInt)]
    signed_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    sent_at: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
}

impl TransactionRow {
    pub(super) fn into_transaction(self) -> Result<SignedTransaction, StoreError> {
        Ok(SignedTransaction {
            signed: NewSignedTransaction {
                nonce: to_u64(self.nonce)?,
                hash: hash(self.hash)?,
                bytes: self.bytes,
                max_fee: to_u64(self.max_fee)?.into(),
                tip: to_u64(self.tip)?.into(),
                is_filler: self.cancels,
            },
            signed_at: Timestamp::from_micros(self.signed_at),
            sent_at: time(self.sent_at),
            last_error: self.last_error,
        })
    }
}

pub(super) fn hash(bytes: Vec<u8>) -> Result<[u8; 32], StoreError> {
    let not_a_hash = |bytes: Vec<u8>| StoreError::corrupt(format!("hash of {} bytes", bytes.len()));
    bytes.try_into().map_err(not_a_hash)
}

pub(super) fn to_u64(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(StoreError::corrupt)
}
