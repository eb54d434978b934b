//! The nonces of accounts: which are assigned, and which withdrawals they pay.

use grid_batch_core::{ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{BatchAttempt, UnsettledNonce};

use super::{
    rows::{
        IS_RESTORED, NONCE_COLUMNS, PaymentRow, StoredPayment, TransactionsByNonce, WITH_NONCE,
        WITHDRAWAL_COLUMNS, hash, load_number, to_stored, whole,
    },
    transactions::{MAY_PAY, WITH_CURRENT_BATCH, signed_transactions},
};
use crate::{
    batch::{lock_lanes, lock_services},
    sql::{Connection, Rows, Statement, StoreError, result_row},
};

pub(super) fn highest_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<u64>, StoreError> {
    let statement = Statement::new(
        "-- highest_nonce
         select max(n.nonce) as number from account_nonces n where n.service_id = ?",
    )
    .text(service_id.as_str());
    load_number(connection, &statement)?.map(whole).transpose()
}

/// A nonce to insert.
pub(super) struct NewNonce {
    pub(super) nonce: u64,
    /// The `seq` and the generation of its withdrawal, if it has one.
    pub(super) owner: Option<(i64, u32)>,
}

/// Inserts a nonce, of this withdrawal or of none.
pub(super) fn insert_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: u64,
    payment: Option<&StoredPayment>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let owner = payment.map(|stored| (stored.withdrawal_seq, stored.payment.generation));
    insert_nonces(connection, service_id, &[NewNonce { nonce, owner }], now)
}

pub(super) fn insert_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonces: &[NewNonce],
    now: Timestamp,
) -> Result<(), StoreError> {
    let numbers = nonces.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let owners = || nonces.iter().map(|it| it.owner);
    connection.execute_rows(
        "-- insert_nonce
         insert into account_nonces
             (service_id, nonce, withdrawal_seq, generation, assigned_at)
         select service_id, nonce, withdrawal_seq, generation, assigned_at from {x}",
        Rows::default()
            .text("service_id", nonces.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers)
            .optional_long("withdrawal_seq", owners().map(|owner| owner.map(|(seq, _)| seq)))
            .optional_long("generation", owners().map(|owner| owner.map(|(_, it)| it.into())))
            .long("assigned_at", nonces.iter().map(|_| now.as_micros())),
    )
}

/// The payment to sign for, if the batch is with the submitter in this attempt. The account is locked until the end of
/// the transaction.
pub(super) fn lock_payment(
    connection: &mut Connection,
    attempt: &BatchAttempt,
) -> Result<Option<StoredPayment>, StoreError> {
    lock_services(connection, [&attempt.service_id])?;
    let key = (attempt.service_id.clone(), attempt.batch_id);
    let lanes = lock_lanes(connection, &[key.clone()].into())?;
    if !lanes.get(&key).is_some_and(|lane| lane.is_with_submitter(attempt.attempt_id)) {
        return Ok(None);
    }
    find_payment(connection, &attempt.service_id, &attempt.batch_id)
}

pub(super) fn find_payment(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<StoredPayment>, StoreError> {
    let statement = Statement::new(format!(
        "-- payment
         select {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}, {IS_RESTORED}
         from batches b join withdrawals w on w.batch_seq = b.seq {WITH_NONCE}
         where b.batch_id = ? and b.service_id = ?"
    ))
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str());
    let rows: Vec<PaymentRow> = connection.load(&statement)?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let mut transactions = match row.nonce_key() {
        Some(key) => signed_transactions(connection, &[key])?,
        None => TransactionsByNonce::new(),
    };
    row.into_stored(&mut transactions).map(Some)
}

/// Whether a payment that is not cancelled may be made with this nonce; `None` if the nonce was never assigned.
pub(super) fn may_pay(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<Option<bool>, StoreError> {
    let statement = Statement::new(format!(
        "-- may_pay
         select {MAY_PAY} and (n.outcome is not null or w.cancelled_at is null) as may_pay
         from account_nonces n {WITH_CURRENT_BATCH}
         where n.service_id = ? and n.nonce = ?"
    ))
    .text(service_id.as_str())
    .long(nonce);
    Ok(connection.load_column(&statement)?.into_iter().next())
}

pub(super) fn stored_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<UnsettledNonce>, StoreError> {
    let statement = Statement::new(
        "-- unsettled_nonces
         select n.nonce, n.undecided, n.note, k.hash,
             (n.withdrawal_seq is null and not n.undecided and n.note is not null) as to_fill
         from account_nonces n
         left join withdrawals w on w.seq = n.withdrawal_seq
         left join batches b on b.seq = w.batch_seq
         left join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
         where n.service_id = ? and coalesce(n.outcome, '') = ''
             and (n.undecided or n.withdrawal_seq is null or b.dlt_status is not null)
         order by n.nonce, k.position",
    )
    .text(service_id.as_str());
    let rows: Vec<UnsettledRow> = connection.load(&statement)?;
    let mut nonces: Vec<UnsettledNonce> = Vec::new();
    for row in rows {
        let nonce = whole(row.nonce)?;
        if nonces.last().is_none_or(|last| last.nonce != nonce) {
            let undecided = row.undecided.then(|| row.note.unwrap_or_default());
            let to_fill = row.to_fill;
            nonces.push(UnsettledNonce { nonce, undecided, to_fill, hashes: Vec::new() });
        }
        if let (Some(last), Some(bytes)) = (nonces.last_mut(), row.hash) {
            last.hashes.push(hash(bytes)?);
        }
    }
    Ok(nonces)
}

result_row! {
    struct UnsettledRow {
        nonce: i64,
        undecided: bool,
        note: Option<String>,
        hash: Option<Vec<u8>>,
        to_fill: bool,
    }
}

/// Whether the account has a nonce for which it is undecided what the chain used it for.
pub(super) fn has_undecided_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "-- has_undecided_nonce
         select n.nonce as number from account_nonces n
         where n.service_id = ? and coalesce(n.outcome, '') = '' and n.undecided
         order by n.nonce limit 1",
    )
    .text(service_id.as_str());
    Ok(load_number(connection, &statement)?.is_some())
}

pub(super) fn pools_of(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<String>, StoreError> {
    let statement = Statement::new(
        "-- pools
         select distinct w.pool from withdrawals w where w.service_id = ? order by w.pool",
    )
    .text(service_id.as_str());
    connection.load_column(&statement)
}
