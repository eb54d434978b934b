use diesel::{alias, prelude::*};
use grid_batch_core::{DltStatus, Timestamp};
use grid_batch_withdrawals::{FailedFilter, FailedWithdrawal, WithdrawalId};

use super::{details::load_fail_reasons, rows::WithdrawalRow};
use crate::sql::{
    Connection, Store, StoreError,
    rows::limit,
    schema::{batches, withdrawals},
};

alias!(withdrawals as cursor: FailedCursor);

/// A withdrawal, the number of its batch, and when that ended.
type FailedRecord = (WithdrawalRow, i64, Option<i64>);

/// One page of failed withdrawals, in the order in which they were scheduled. What the filter says about
/// the reason is left to the caller.
pub(crate) fn failed_withdrawals(
    store: &Store,
    filter: &FailedFilter,
    after: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<FailedWithdrawal>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let records = load_page(connection, filter, after, count)?;
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let seqs = records.iter().map(|(_, batch_seq, _)| *batch_seq).collect();
        let mut reasons = load_fail_reasons(connection, seqs)?;
        records
            .into_iter()
            .map(|(row, batch_seq, ended_at)| {
                Ok(FailedWithdrawal {
                    withdrawal: row.into_withdrawal()?,
                    failed_at: Timestamp::from_micros(ended_at.unwrap_or_default()),
                    fail_reason: reasons.remove(&batch_seq).unwrap_or_default(),
                })
            })
            .collect()
    })
}

fn load_page(
    connection: &mut Connection,
    filter: &FailedFilter,
    after: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<FailedRecord>, StoreError> {
    let mut page = withdrawals::table
        .inner_join(batches::table)
        .filter(withdrawals::list_state.eq(DltStatus::Invalid.as_str()))
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
