//! Withdrawals with everything that is stored about them: one, pages, and failed ones.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use diesel::{alias, dsl::IntoBoxed, prelude::*};
use grid_batch_core::batches::{DltStatus, Hold};
use grid_batch_withdrawals::{
    FailedFilter, WithdrawalDetails, WithdrawalFilter, WithdrawalId, WithdrawalPage,
    WithdrawalState, WithdrawalTexts,
};

use super::{
    heads::{Head, load_heads},
    rows::{AccountNonce, NonceRow, WithdrawalRow, withdrawal_id},
    schema::{account_nonces, withdrawals},
    transactions::signed_transactions,
};
use crate::{
    operator::{fill_page, waiting_holds_of, with_waiting_hold},
    sql::{
        Connection, Rows, StoreError,
        any_connection::MultiBackend,
        query::{BatchRecord, lane_holds_batch},
        result_row,
        rows::limit,
        schema::{batches, lanes, transaction_receipts},
    },
};

/// A withdrawal with its batch, as stored.
pub(super) type WithdrawalRecord = (WithdrawalRow, BatchRecord);

/// Every withdrawal with its latest batch.
#[diesel::dsl::auto_type]
pub(super) fn withdrawals_with_batch() -> _ {
    withdrawals::table.inner_join(batches::table).left_join(lanes::table.on(lane_holds_batch()))
}

pub(super) fn find_withdrawal(
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<Option<WithdrawalDetails>, StoreError> {
    let query = withdrawals_with_batch()
        .filter(withdrawals::withdrawal_id.eq(&id.as_bytes()[..]))
        .select(WithdrawalRecord::as_select());
    let records = connection.load_query("withdrawal", query)?;
    Ok(add_details(connection, records)?.into_iter().next())
}

/// Reads the other data of these withdrawals: nonces, signed transactions and reasons.
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
    // If several rows have the same key, the map keeps the last.
    Ok(connection.load_query("withdrawal_nonces", query)?.into_iter().collect())
}

/// The holds of batches that wait behind others, by the batch's number.
fn load_waiting_holds(
    connection: &mut Connection,
    records: &[WithdrawalRecord],
) -> Result<HashMap<i64, Hold>, StoreError> {
    let waiting = records.iter().map(|(_, batch)| batch).filter(|b| b.waits_behind_another());
    let seqs: Vec<i64> = waiting.map(BatchRecord::seq).collect();
    if seqs.is_empty() { Ok(HashMap::new()) } else { waiting_holds_of(connection, seqs) }
}

/// The first reason of each invalid batch, by the batch's number.
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

/// The `list_state` of a withdrawal whose batch is open.
const OPEN: &str = "OPEN";

type Selection<'a> = IntoBoxed<'a, withdrawals::table, MultiBackend>;

/// A page of withdrawals before this one.
pub(super) fn withdrawal_page(
    connection: &mut Connection,
    filter: &WithdrawalFilter,
    before: Option<i64>,
    count: usize,
) -> Result<WithdrawalPage, StoreError> {
    let next = |connection: &mut Connection, before: Option<i64>, count| {
        Step { filter, before: before.unwrap_or(i64::MAX), count }.select(connection)
    };
    let select = |connection: &mut Connection, seqs: &[i64]| select(connection, filter, seqs);
    let (seqs, next) = fill_page(connection, before, count, next, select)?;
    let records = load_records(connection, seqs)?;
    let withdrawals = add_details(connection, records)?;
    let next = match next {
        Some(seq) => find_id(connection, seq)?,
        None => None,
    };
    Ok(WithdrawalPage { withdrawals, next })
}

/// Those of the withdrawals whose texts contain what the filter requires.
fn select(
    connection: &mut Connection,
    filter: &WithdrawalFilter,
    seqs: &[i64],
) -> Result<Vec<(i64, i64)>, StoreError> {
    if filter.contains == WithdrawalTexts::default() {
        return Ok(seqs.iter().map(|seq| (*seq, *seq)).collect());
    }
    let mut rows: Vec<TextsRow> = connection.load_rows(
        "-- texts_of_withdrawals
         select w.seq, w.service_id, w.pool, w.beneficiary, w.idempotency_key, b.label
         from {x} join withdrawals w on w.seq = x.seq join batches b on b.seq = w.batch_seq",
        Rows::default().long("seq", seqs.iter().copied()).in_chunks(),
    )?;
    rows.sort_unstable_by_key(|row| Reverse(row.seq));
    let selected = |row: TextsRow| {
        let TextsRow { seq, service_id, pool, beneficiary, idempotency_key, label } = row;
        let (service_id, pool, beneficiary) = (Some(service_id), Some(pool), Some(beneficiary));
        let texts = WithdrawalTexts { service_id, pool, beneficiary, idempotency_key, label };
        texts.contain(&filter.contains).then_some((seq, seq))
    };
    Ok(rows.into_iter().filter_map(selected).collect())
}

result_row! {
    /// The texts of a withdrawal, and the label of its batch.
    struct TextsRow {
        seq: i64,
        service_id: String,
        pool: String,
        beneficiary: String,
        idempotency_key: Option<String>,
        label: Option<String>,
    }
}

/// A step of a page: the newest withdrawals before `before`, selected by all but parts of texts.
struct Step<'f> {
    filter: &'f WithdrawalFilter,
    before: i64,
    count: usize,
}

impl Step<'_> {
    /// The numbers of the withdrawals, the newest first. Each state is read from the start of the step until it is full.
    fn select(&self, connection: &mut Connection) -> Result<Vec<i64>, StoreError> {
        let wants = |state| self.filter.states.is_empty() || self.filter.states.contains(&state);
        let mut seqs = Vec::new();
        if wants(WithdrawalState::Withdrawn) {
            seqs.extend(self.select_newest(connection, DltStatus::Committed.as_str(), &[])?);
        }
        if wants(WithdrawalState::Failed) {
            seqs.extend(self.select_newest(connection, DltStatus::Invalid.as_str(), &[])?);
        }
        let open = WithdrawalState::ALL.into_iter().filter(|state| !state.has_ended());
        let (wanted, others): (BTreeSet<_>, BTreeSet<_>) = open.partition(|state| wants(*state));
        if others.is_empty() {
            seqs.extend(self.select_newest(connection, OPEN, &[])?);
        } else if !wanted.is_empty() {
            seqs.extend(self.select_open(connection, &wanted)?);
        }
        seqs.sort_unstable_by_key(|seq| Reverse(*seq));
        seqs.truncate(self.count);
        Ok(seqs)
    }

    /// Open withdrawals in these states. All that are not scheduled are in a lane or held, and there are few of them,
    /// so they are selected or left out individually.
    fn select_open(
        &self,
        connection: &mut Connection,
        wanted: &BTreeSet<WithdrawalState>,
    ) -> Result<Vec<i64>, StoreError> {
        let (in_wanted, in_others): (Vec<Head>, Vec<Head>) =
            load_heads(connection)?.into_iter().partition(|head| wanted.contains(&head.state));
        let batch_seqs = |heads: Vec<Head>| -> Vec<i64> {
            heads.into_iter().map(|head| head.batch_seq).collect()
        };
        if wanted.contains(&WithdrawalState::Scheduled) {
            return self.select_newest(connection, OPEN, &batch_seqs(in_others));
        }
        let query = self
            .selection()
            .filter(withdrawals::list_state.eq(OPEN))
            .filter(withdrawals::batch_seq.eq_any(batch_seqs(in_wanted)))
            .select(withdrawals::seq);
        connection.load_query("withdrawals_of_heads", query)
    }

    /// The newest withdrawals with this `list_state`, except those with these batches.
    fn select_newest(
        &self,
        connection: &mut Connection,
        list_state: &str,
        except: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        let mut query = self
            .selection()
            .filter(withdrawals::list_state.eq(list_state))
            .order_by(withdrawals::seq.desc())
            .limit(limit(self.count));
        if !except.is_empty() {
            query = query.filter(withdrawals::batch_seq.ne_all(except));
        }
        connection.load_query("newest_withdrawals", query.select(withdrawals::seq))
    }

    /// The selection of the filter without its states.
    fn selection(&self) -> Selection<'_> {
        let filter = self.filter;
        let mut selected = withdrawals::table.filter(withdrawals::seq.lt(self.before)).into_boxed();
        selected = if filter.calls {
            selected.filter(withdrawals::call.is_not_null())
        } else {
            selected.filter(withdrawals::call.is_null())
        };
        if let Some(pool) = &filter.pool {
            selected = selected.filter(withdrawals::pool.eq(pool));
        }
        if let Some(beneficiary) = &filter.beneficiary {
            selected = selected.filter(withdrawals::beneficiary.eq(beneficiary));
        }
        if let Some(service_id) = &filter.service_id {
            selected = selected.filter(withdrawals::service_id.eq(service_id.as_str()));
        }
        if let Some(reward_id) = &filter.reward_id {
            selected = selected.filter(withdrawals::reward_id.eq(&reward_id.as_bytes()[..]));
        }
        if let Some(key) = &filter.idempotency_key {
            selected = selected.filter(withdrawals::idempotency_key.eq(key));
        }
        selected
    }
}

pub(super) fn find_seq(
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<Option<i64>, StoreError> {
    let query = withdrawals::table
        .filter(withdrawals::withdrawal_id.eq(&id.as_bytes()[..]))
        .select(withdrawals::seq);
    let found: Vec<i64> = connection.load_query("withdrawal_seq", query)?;
    Ok(found.into_iter().next())
}

fn find_id(connection: &mut Connection, seq: i64) -> Result<Option<WithdrawalId>, StoreError> {
    let query =
        withdrawals::table.filter(withdrawals::seq.eq(seq)).select(withdrawals::withdrawal_id);
    let found: Vec<Vec<u8>> = connection.load_query("withdrawal_id", query)?;
    found.first().map(|id| withdrawal_id(id)).transpose()
}

/// Reads withdrawals with their batches, the newest first.
fn load_records(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<Vec<WithdrawalRecord>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let query = withdrawals_with_batch()
        .filter(withdrawals::seq.eq_any(seqs))
        .select(WithdrawalRecord::as_select());
    let mut records: Vec<WithdrawalRecord> = connection.load_query("withdrawals", query)?;
    records.sort_unstable_by_key(|(withdrawal, _)| Reverse(withdrawal.withdrawal_seq));
    Ok(records)
}

/// A withdrawal, the number of its batch, and when that ended.
type FailedRecord = (WithdrawalRow, i64, Option<i64>);

pub(super) fn load_page(
    connection: &mut Connection,
    filter: &FailedFilter,
    after: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<FailedRecord>, StoreError> {
    let mut page = withdrawals::table
        .inner_join(batches::table)
        .filter(withdrawals::list_state.eq(DltStatus::Invalid.as_str()))
        .filter(withdrawals::call.is_null())
        .select((WithdrawalRow::as_select(), batches::seq, batches::ended_at))
        .order_by(withdrawals::seq)
        .limit(limit(count))
        .into_boxed();
    if let Some(pool) = &filter.pool {
        page = page.filter(withdrawals::pool.eq(pool));
    }
    if let Some(service_id) = &filter.service_id {
        page = page.filter(withdrawals::service_id.eq(service_id.as_str()));
    }
    if let Some(since) = filter.failed_since {
        page = page.filter(batches::ended_at.ge(since.as_micros()));
    }
    if let Some(after) = after {
        let seq = cursor
            .filter(cursor.field(withdrawals::withdrawal_id).eq(&after.as_bytes()[..]))
            .select(cursor.field(withdrawals::seq));
        page = page.filter(withdrawals::seq.nullable().gt(seq.single_value()));
    }
    connection.load_query("failed_withdrawals", page)
}

alias!(withdrawals as cursor: FailedCursor);
