use diesel::{alias, prelude::*};
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalFilter, WithdrawalId};

use super::{
    details::{WithdrawalRecord, add_details, withdrawals_with_batch},
    rows::WithdrawalRow,
};
use crate::sql::{
    Connection, Store, StoreError,
    query::BatchRecord,
    rows::limit,
    schema::{batches, withdrawals},
};

alias!(withdrawals as cursor: WithdrawalCursor);

pub(crate) fn withdrawals(
    store: &Store,
    filter: &WithdrawalFilter,
    before: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<WithdrawalDetails>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let records = load_page(connection, filter, before, count)?;
        add_details(connection, records)
    })
}

fn load_page(
    connection: &mut Connection,
    filter: &WithdrawalFilter,
    before: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<WithdrawalRecord>, StoreError> {
    let mut page = withdrawals_with_batch()
        .select(<(WithdrawalRow, BatchRecord)>::as_select())
        .order_by(withdrawals::seq.desc())
        .limit(limit(count))
        .into_boxed();
    match filter.ended {
        None => {}
        Some(true) => page = page.filter(batches::ended_at.is_not_null()),
        Some(false) => page = page.filter(batches::ended_at.is_null()),
    }
    if let Some(pool) = &filter.pool {
        page = page.filter(withdrawals::pool.eq(pool));
    }
    if let Some(beneficiary) = &filter.beneficiary {
        page = page.filter(withdrawals::beneficiary.eq(beneficiary));
    }
    if let Some(service_id) = &filter.service_id {
        page = page.filter(withdrawals::service_id.eq(service_id.as_str()));
    }
    if let Some(reward_id) = &filter.reward_id {
        page = page.filter(withdrawals::reward_id.eq(&reward_id.as_bytes()[..]));
    }
    if let Some(before) = before {
        let seq = cursor
            .filter(cursor.field(withdrawals::withdrawal_id).eq(&before.as_bytes()[..]))
            .select(cursor.field(withdrawals::seq));
        page = page.filter(withdrawals::seq.nullable().lt(seq.single_value()));
    }
    connection.load_query("withdrawals", page)
}
