use std::slice;

use diesel::{QueryableByName, sql_types::Bool};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, SignFn, SignedTransaction};

use super::{
    nonces::{highest_nonce, insert_nonce},
    payment::{lock_payment, may_be_paid},
    to_stored,
    transactions::{MAY_PAY, WITH_CURRENT_BATCH, insert_transaction, signed_transactions},
    unsettled::has_undecided_nonce,
};
use crate::sql::{
    Connection, Statement, Store, StoreError, error::SigningError, groups::LOCK_LIMIT,
};

/// Assigns the next nonce of the account, at least `at_least`, and stores it with the transaction
/// that is signed with it.
pub(crate) fn assign_nonce(
    store: &Store,
    attempt: &BatchAttempt,
    at_least: u64,
    sign: &mut SignFn<'_>,
) -> BatchResult<Option<SignedTransaction>> {
    let service_id = &attempt.service_id;
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
        let payment = &stored.payment;
        if payment.cancel_requested || payment.nonce.as_ref().is_some_and(may_be_paid) {
            return Ok(None);
        }
        if has_undecided_nonce(connection, service_id)? {
            return Ok(None);
        }
        let next = highest_nonce(connection, service_id)?.map(|highest| highest + 1);
        let nonce = next.map_or(at_least, |next| next.max(at_least));
        let signed = sign_with(nonce, sign)?;
        insert_nonce(connection, service_id, nonce, Some(&stored), now)?;
        Ok(Some(insert_transaction(connection, service_id, signed, 0, now)?))
    })
}

/// Stores another transaction with the open nonce of a withdrawal.
pub(crate) fn replace_transaction(
    store: &Store,
    attempt: &BatchAttempt,
    signed: NewSignedTransaction,
) -> Result<Option<SignedTransaction>, StoreError> {
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
        let Some(open) = stored.payment.nonce else { return Ok(None) };
        if open.nonce != signed.nonce || open.outcome.is_some() {
            return Ok(None);
        }
        let position = open.transactions.len();
        if let Some(same) = open.transactions.into_iter().find(|stored| stored.signed == signed) {
            return Ok(Some(same));
        }
        insert_transaction(connection, &attempt.service_id, signed, position, now).map(Some)
    })
}

/// Stores a filler for a nonce before that of a withdrawal, so that the withdrawal does not wait for
/// it forever.
pub(crate) fn fill_nonce(
    store: &Store,
    attempt: &BatchAttempt,
    nonce: u64,
    sign: &mut SignFn<'_>,
) -> BatchResult<Option<SignedTransaction>> {
    let service_id = &attempt.service_id;
    let number = to_stored("nonce", nonce).map_err(StoreError::from)?;
    let now = store.now();
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
        if stored.payment.nonce.is_none_or(|open| open.nonce <= nonce) {
            return Ok(None);
        }
        match may_pay(connection, service_id, number)? {
            Some(true) => return Ok(None),
            Some(false) => {}
            None => insert_nonce(connection, service_id, nonce, None, now)?,
        }
        let key = (service_id.as_str().to_owned(), number);
        let mut transactions = signed_transactions(connection, slice::from_ref(&key))?;
        let transactions = transactions.remove(&key).unwrap_or_default();
        let position = transactions.len();
        let filler = sign_with(nonce, sign)?;
        if !filler.is_filler {
            return Err(StoreError::from(SigningError::NotAFiller { nonce }).into());
        }
        if let Some(same) = transactions.into_iter().find(|stored| stored.signed == filler) {
            return Ok(Some(same));
        }
        Ok(Some(insert_transaction(connection, service_id, filler, position, now)?))
    })
}

/// Signs, and checks that the transaction has this nonce.
fn sign_with(nonce: u64, sign: &mut SignFn<'_>) -> BatchResult<NewSignedTransaction> {
    let signed = sign(nonce)?;
    if signed.nonce != nonce {
        let error = SigningError::WrongNonce { signed: signed.nonce, assigned: nonce };
        return Err(StoreError::from(error).into());
    }
    Ok(signed)
}

/// Whether a payment that is not cancelled may be made with this nonce; `None` if it was never assigned.
fn may_pay(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<Option<bool>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- may_pay
             select {MAY_PAY} and (n.outcome is not null or w.cancelled_at is null) as may_pay
             from account_nonces n {WITH_CURRENT_BATCH}
             where n.service_id = ? and n.nonce = ?"
        ),
    )
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<MayPayRow> = connection.load(&statement)?;
    Ok(rows.first().map(|row| row.may_pay))
}

#[derive(QueryableByName)]
struct MayPayRow {
    #[diesel(sql_type = Bool)]
    may_pay: bool,
}
