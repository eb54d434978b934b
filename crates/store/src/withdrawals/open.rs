use diesel::{
    alias,
    dsl::{count_star, exists, min, not},
    prelude::*,
};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::OpenWithdrawals;

use super::{
    details::{WithdrawalRecord, withdrawals_with_batch},
    rows::WithdrawalRow,
};
use crate::sql::{
    Connection, Store, StoreError,
    query::BatchRecord,
    rows::{limit, service_id},
    schema::{batches, lanes, withdrawals},
};

alias!(lanes as heads: Heads, lanes as older_heads: OlderHeads);

impl Store {
    /// How many open withdrawals each pool has at each gas admin. The cost grows with their number.
    pub fn open_withdrawals(&self) -> Result<Vec<OpenWithdrawals>, StoreError> {
        let not_before_head = batches::service_id
            .eq(heads.field(lanes::service_id))
            .and(batches::created_at.nullable().ge(heads.field(lanes::created_at)));
        let older_head = older_heads
            .filter(older_heads.field(lanes::busy))
            .filter(older_heads.field(lanes::service_id).eq(heads.field(lanes::service_id)))
            .filter(older_heads.field(lanes::created_at).lt(heads.field(lanes::created_at)));
        let query = heads
            .inner_join(batches::table.on(not_before_head))
            .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
            .filter(heads.field(lanes::busy))
            .filter(not(exists(older_head)))
            .filter(batches::ended_at.is_null())
            .group_by((withdrawals::service_id, withdrawals::pool))
            .order_by((withdrawals::service_id, withdrawals::pool))
            .select((withdrawals::service_id, withdrawals::pool, count_star()));
        let rows: Vec<(String, String, i64)> =
            self.pools.read()?.load_query("open_withdrawals", query)?;
        rows.into_iter()
            .map(|(service, pool, open)| {
                let open = u64::try_from(open).map_err(StoreError::corrupt)?;
                Ok(OpenWithdrawals { service_id: service_id(&service)?, pool, open })
            })
            .collect()
    }
}

/// The open withdrawals of a service, in the order of its queue, from the one after `after`.
pub(super) fn open_withdrawals_of(
    connection: &mut Connection,
    service_id: &ServiceId,
    after: Option<Timestamp>,
    count: usize,
) -> Result<Vec<WithdrawalRecord>, StoreError> {
    let oldest_head = heads
        .filter(heads.field(lanes::service_id).eq(service_id.as_str()))
        .select(min(heads.field(lanes::created_at)));
    let query = withdrawals_with_batch()
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::ended_at.is_null())
        .filter(batches::created_at.nullable().ge(oldest_head.single_value()))
        .filter(batches::created_at.gt(after.map_or(i64::MIN, Timestamp::as_micros)))
        .order_by((batches::service_id, batches::created_at))
        .limit(limit(count))
        .select(<(WithdrawalRow, BatchRecord)>::as_select());
    connection.load_query("open_withdrawals_of", query)
}
