use diesel::{
    alias,
    dsl::{count_star, min},
    prelude::*,
};
use grid_batch_core::{Ahead, ServiceId, StoredBatch, Timestamp};

use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, lane_holds_batch, single_count},
    schema::{batches, lanes},
};

alias!(lanes as heads: Heads);

/// What is ahead of the open batches of a service that were stored at these times.
///
/// One query counts for all of them, and reads a limited number of rows however long the queue is.
pub(crate) fn ahead(
    store: &Store,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<Vec<Option<Ahead>>, StoreError> {
    let Some(last) = created_at.iter().max() else { return Ok(Vec::new()) };
    store.pools.read()?.snapshot(|connection| {
        let Some(head) = load_head(connection, service_id)? else {
            return Ok(vec![None; created_at.len()]);
        };
        let open = load_open_times(connection, service_id, head.created_at, *last)?;
        let ahead_of = |at: &Timestamp| {
            if *at <= head.created_at {
                return None;
            }
            let before = open.partition_point(|open| *open < at.as_micros());
            let count = u64::try_from(before).unwrap_or(u64::MAX);
            let more = count > Ahead::MAX_COUNTED;
            Some(Ahead { head: head.clone(), count: count.min(Ahead::MAX_COUNTED), more })
        };
        Ok(created_at.iter().map(ahead_of).collect())
    })
}

/// What is ahead of a batch, counted to the end.
pub(super) fn all_ahead(
    connection: &mut Connection,
    batch: &StoredBatch,
) -> Result<Option<Ahead>, StoreError> {
    let count = count_ahead(connection, batch)?;
    if count == 0 {
        return Ok(None);
    }
    let head = load_head(connection, &batch.service_id)?;
    Ok(head.map(|head| Ahead { head, count, more: false }))
}

/// The batch of a service that is next or under way.
fn load_head(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<StoredBatch>, StoreError> {
    let query = lanes::table
        .inner_join(batches::table.on(lane_holds_batch()))
        .filter(lanes::busy)
        .filter(lanes::service_id.eq(service_id.as_str()))
        .order_by((lanes::service_id, lanes::lane))
        .limit(1)
        .select(BatchRecord::as_select());
    let found: Vec<BatchRecord> = connection.load_query("head", query)?;
    found.into_iter().next().map(BatchRecord::into_batch).transpose()
}

/// When the open batches of a service were stored, from `first` to before `end`, in order: one more than
/// are counted.
fn load_open_times(
    connection: &mut Connection,
    service_id: &ServiceId,
    first: Timestamp,
    end: Timestamp,
) -> Result<Vec<i64>, StoreError> {
    let query = batches::table
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::ended_at.is_null())
        .filter(batches::created_at.ge(first.as_micros()))
        .filter(batches::created_at.lt(end.as_micros()))
        .order_by((batches::service_id, batches::created_at))
        .limit(i64::try_from(Ahead::MAX_COUNTED).unwrap_or(i64::MAX) + 1)
        .select(batches::created_at);
    connection.load_query("open_times", query)
}

/// How many open batches of its service come before a batch.
pub(crate) fn count_ahead(
    connection: &mut Connection,
    batch: &StoredBatch,
) -> Result<u64, StoreError> {
    if batch.progress.state.is_terminal() {
        return Ok(0);
    }
    let service_id = batch.service_id.as_str();
    let oldest_head = heads
        .filter(heads.field(lanes::service_id).eq(service_id))
        .select(min(heads.field(lanes::created_at)));
    let query = batches::table
        .filter(batches::service_id.eq(service_id))
        .filter(batches::ended_at.is_null())
        .filter(batches::created_at.lt(batch.created_at.as_micros()))
        .filter(batches::created_at.nullable().ge(oldest_head.single_value()))
        .select(count_star());
    let counts: Vec<i64> = connection.load_query("count_ahead", query)?;
    single_count(&counts)
}
