use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::Hold;
use grid_batch_withdrawals::{AheadCount, WithdrawalDetails, WithdrawalId};

use super::{
    nonce_row::NonceRow,
    rows::WithdrawalRow,
    transactions::{AccountNonce, signed_transactions},
};
use crate::{
    operator::{count_ahead_to_limit, waiting_holds_of, with_waiting_hold},
    sql::{
        Connection, Store, StoreError,
        query::{BatchRecord, lane_holds_batch},
        schema::{account_nonces, batches, lanes, transaction_receipts, withdrawals},
    },
};

/// A withdrawal with its batch, as stored.
pub(super) type WithdrawalRecord = (WithdrawalRow, BatchRecord);

/// Every withdrawal with its latest batch.
#[diesel::dsl::auto_type]
pub(super) fn withdrawals_with_batch() -> _ {
    withdrawals::table.inner_join(batches::table).left_join(lanes::table.on(lane_holds_batch()))
}

pub(crate) fn withdrawal(
    store: &Store,
    id: &WithdrawalId,
) -> Result<Option<WithdrawalDetails>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let Some(mut details) = find_withdrawal(connection, id)? else { return Ok(None) };
        let found = count_ahead_to_limit(connection, &details.batch)?;
        details.ahead = Some(AheadCount::of_found(found));
        Ok(Some(details))
    })
}

pub(super) fn find_withdrawal(
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<Option<WithdrawalDetails>, StoreError> {
    let query = withdrawals_with_batch()
        .filter(withdrawals::withdrawal_id.eq(&id.as_bytes()[..]))
        .select(<(WithdrawalRow, BatchRecord)>::as_select());
    let records = connection.load_query("withdrawal", query)?;
    Ok(add_details(connection, records)?.into_iter().next())
}

/// Reads what else belongs to these withdrawals: nonces, signed transactions, reasons.
pub(super) fn add_details(
    connection: &mut Connection,
    records: Vec<WithdrawalRecord>,
) -> Result<Vec<WithdrawalDetails>, StoreError> {
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let mut nonces = load_latest_nonces(connection, &records)?;
    let batch_seqs = records.iter().map(|(_, batch)| batch.seq()).collect();
    let mut fail_reasons = load_fail_reasons(connection, batch_seqs)?;
    let mut holds = load_waiting_holds(connection, &records)?;
    let keys: Vec<AccountNonce> = nonces.values().filter_map(NonceRow::key).collect();
    let mut signed = signed_transactions(connection, &keys)?;
    records
        .into_iter()
        .map(|(withdrawal, batch)| {
            let batch_seq = batch.seq();
            let nonce = match nonces.remove(&withdrawal.withdrawal_seq) {
                Some(nonce) => nonce.into_nonce(&mut signed)?,
                None => None,
            };
            Ok(WithdrawalDetails {
                created_at: withdrawal.created_at(),
                generation: withdrawal.generation()?,
                cancelled_at: withdrawal.cancelled_at(),
                end: withdrawal.end(),
                ahead: None,
                nonce,
                withdrawal: withdrawal.into_withdrawal()?,
                fail_reason: fail_reasons.remove(&batch_seq),
                batch: with_waiting_hold(batch, holds.remove(&batch_seq))?,
            })
        })
        .collect()
}

/// The highest nonce of each withdrawal that has one, by the withdrawal's number.
fn load_latest_nonces(
    connection: &mut Connection,
    records: &[WithdrawalRecord],
) -> Result<HashMap<i64, NonceRow>, StoreError> {
    let seqs: Vec<i64> = records.iter().map(|(withdrawal, _)| withdrawal.withdrawal_seq).collect();
    let query = account_nonces::table
        .filter(account_nonces::withdrawal_seq.eq_any(seqs))
        .order_by(account_nonces::nonce)
        .select((account_nonces::withdrawal_seq.assume_not_null(), NonceRow::as_select()));
    // Of several rows with one key, a map keeps the last.
    Ok(connection.load_query("withdrawal_nonces", query)?.into_iter().collect())
}

/// The holds of those that wait behind others, by the batch's number.
fn load_waiting_holds(
    connection: &mut Connection,
    records: &[WithdrawalRecord],
) -> Result<HashMap<i64, Hold>, StoreError> {
    let waiting = records.iter().map(|(_, batch)| batch).filter(|b| b.waits_behind_another());
    let seqs: Vec<i64> = waiting.map(BatchRecord::seq).collect();
    if seqs.is_empty() { Ok(HashMap::new()) } else { waiting_holds_of(connection, seqs) }
}

/// The first reason why each invalid batch is invalid, by the batch's number.
pub(super) fn load_fail_reasons(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<HashMap<i64, String>, StoreError> {
    let query = transaction_receipts::table
        .filter(transaction_receipts::batch_seq.eq_any(seqs))
        .filter(transaction_receipts::position.eq(0))
        .select((transaction_receipts::batch_seq, transaction_receipts::error_message));
    Ok(connection.load_query("withdrawal_fail_reasons", query)?.into_iter().collect())
}
