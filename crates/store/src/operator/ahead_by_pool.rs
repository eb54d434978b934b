//! What is ahead of the withdrawals of a gas admin of which a pool is parked.

use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::{Ahead, ServiceId, StoredBatch, Timestamp, WaitReason};

use super::ahead::load_open_times;
use crate::sql::{
    Connection, StoreError,
    query::{BatchRecord, lane_holds_batch},
    schema::{batches, lanes, withdrawals},
};

/// The batches in the lanes of a gas admin, the oldest first.
pub(super) struct PoolHeads(Vec<PoolHead>);

struct PoolHead {
    batch: StoredBatch,
    /// Withdrawals of other pools overtake it.
    is_parked: bool,
    pool: String,
}

impl PoolHeads {
    /// `None`: the batches of the service wait in one order.
    pub(super) fn load(
        connection: &mut Connection,
        service_id: &ServiceId,
    ) -> Result<Option<Self>, StoreError> {
        let query = lanes::table
            .inner_join(batches::table.on(lane_holds_batch()))
            .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
            .filter(lanes::service_id.eq(service_id.as_str()))
            .filter(lanes::by_pool)
            .select((BatchRecord::as_select(), lanes::pool_parked, withdrawals::pool));
        let rows: Vec<(BatchRecord, bool, String)> = connection.load_query("pool_heads", query)?;
        let mut heads = rows
            .into_iter()
            .map(|(batch, is_parked, pool)| {
                Ok(PoolHead { batch: batch.into_batch()?, is_parked, pool })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        heads.sort_unstable_by_key(|head| head.batch.created_at);
        Ok((!heads.is_empty()).then_some(Self(heads)))
    }

    /// What is ahead of the open withdrawals that were stored at these times.
    pub(super) fn ahead(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> Result<Vec<Option<Ahead>>, StoreError> {
        let last = created_at.iter().max().copied().unwrap_or_default();
        let open = match self.0.first() {
            Some(first) => load_open_times(connection, service_id, first.batch.created_at, last)?,
            None => Vec::new(),
        };
        let pools = load_pools(connection, service_id, created_at)?;
        let before = |at: Timestamp| {
            u64::try_from(open.partition_point(|open| *open < at.as_micros())).unwrap_or(u64::MAX)
        };
        let ahead_of = |at: &Timestamp| {
            let head = self.head_of(*at, pools.get(&at.as_micros()).map(String::as_str))?;
            let more = before(*at) > Ahead::MAX_COUNTED;
            let count = before(*at).min(Ahead::MAX_COUNTED);
            let count = count.saturating_sub(before(head.batch.created_at));
            let (reason, head) = (WaitReason::Behind, Some(head.batch.clone()));
            Some(Ahead { reason, head, head_waits: false, count, more })
        };
        Ok(created_at.iter().map(ahead_of).collect())
    }

    /// The batch in a lane that the withdrawal of a pool waits for: the one of its pool if that is parked, or
    /// the first one that is not parked.
    fn head_of(&self, at: Timestamp, pool: Option<&str>) -> Option<&PoolHead> {
        let own = self.0.iter().find(|head| Some(head.pool.as_str()) == pool && head.is_parked);
        let not_parked = self.0.iter().find(|head| !head.is_parked);
        let first = own.or(not_parked).or(self.0.first())?;
        (first.batch.created_at < at).then_some(first)
    }
}

/// The pools of the withdrawals of a service whose batches were stored at these times.
fn load_pools(
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<HashMap<i64, String>, StoreError> {
    let created_at: Vec<i64> = created_at.iter().map(|at| at.as_micros()).collect();
    let query = batches::table
        .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::created_at.eq_any(created_at))
        .select((batches::created_at, withdrawals::pool));
    Ok(connection.load_query("pools_of_batches", query)?.into_iter().collect())
}
