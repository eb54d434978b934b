use std::collections::BTreeSet;

use diesel::{
    alias,
    dsl::{count_star, min},
    prelude::*,
};
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ServiceId, Timestamp};

use super::{
    pauses::paused_since,
    wait_reasons::{BlockerBatch, load_blockers, load_first_halt, load_wait_reasons},
};
use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, lane_holds_batch, single_count},
    rows::time,
    schema::{batches, lanes},
};

alias!(lanes as heads: Heads);

/// What is ahead of the open batches of a service that were stored at these times.
///
/// A single query counts for all of them, and reads a limited number of rows, however long the queue is.
pub(super) fn ahead(
    store: &Store,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<Vec<Option<Ahead>>, StoreError> {
    let Some(last) = created_at.iter().max() else { return Ok(Vec::new()) };
    store.pools.read()?.snapshot(|connection| {
        let found = ahead_unless_paused(store, connection, service_id, created_at, *last)?;
        let Some(since) = paused_since(connection, service_id)? else { return Ok(found) };
        Ok(found.into_iter().map(|ahead| Some(paused(ahead, since))).collect())
    })
}

fn ahead_unless_paused(
    store: &Store,
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
    last: Timestamp,
) -> Result<Vec<Option<Ahead>>, StoreError> {
    let scheduled = load_wait_reasons(store, connection, service_id, created_at)?;
    if let Some(ahead) = scheduled {
        return Ok(created_at.iter().map(|at| ahead.get(at).cloned()).collect());
    }
    if let Some(by_pool) = store.scheduler.hooks().ahead(connection, service_id, created_at)? {
        return Ok(by_pool);
    }
    let Some(head) = load_head(connection, service_id)? else {
        return Ok(vec![None; created_at.len()]);
    };
    let open = load_open_times(connection, service_id, head.created_at, last)?;
    let halt = load_halt(connection, service_id)?;
    let ahead_of = |at: &Timestamp| {
        let halt = halt.as_ref().filter(|halt| halt.batch.created_at < *at);
        if *at <= head.created_at && halt.is_none() {
            return None;
        }
        let before = open.partition_point(|open| *open < at.as_micros());
        let count = u64::try_from(before).unwrap_or(u64::MAX);
        let (count, more) = (count.min(Ahead::MAX_COUNTED), count > Ahead::MAX_COUNTED);
        Some(match halt {
            Some(halt) => stopped(halt, count, more),
            None => in_order(head.clone(), count, more),
        })
    };
    Ok(created_at.iter().map(ahead_of).collect())
}

/// What is ahead of a batch that had no attempt in a paused service: the pause, unless the batch waits for something
/// that may outlast the pause.
fn paused(ahead: Option<Ahead>, since: Timestamp) -> Ahead {
    let reason = WaitReason::Paused { since, pause: None };
    match ahead {
        None => Ahead::only(reason),
        Some(ahead) if matches!(ahead.reason, WaitReason::Behind | WaitReason::Lane) => {
            Ahead { reason, head: None, ..ahead }
        }
        Some(ahead) => ahead,
    }
}

/// What is ahead of a batch, counted to the end if its service has one lane.
pub(super) fn all_ahead(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
) -> Result<Option<Ahead>, StoreError> {
    let ahead = all_ahead_unless_paused(store, connection, batch)?;
    if batch.progress.state != BatchState::New {
        return Ok(ahead);
    }
    match paused_since(connection, &batch.service_id)? {
        Some(since) => Ok(Some(paused(ahead, since))),
        None => Ok(ahead),
    }
}

fn all_ahead_unless_paused(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
) -> Result<Option<Ahead>, StoreError> {
    let (service_id, created_at) = (&batch.service_id, batch.created_at);
    let scheduled = if batch.progress.state.is_terminal() {
        None
    } else {
        load_wait_reasons(store, connection, service_id, &[created_at])?
    };
    if let Some(mut ahead) = scheduled {
        return Ok(ahead.remove(&created_at));
    }
    if !batch.progress.state.is_terminal()
        && let Some(mut by_pool) =
            store.scheduler.hooks().ahead(connection, service_id, &[created_at])?
    {
        return Ok(by_pool.pop().flatten());
    }
    let count = count_ahead(connection, batch)?;
    if let Some(halt) = load_halt(connection, service_id)?
        && halt.batch.created_at < created_at
        && !batch.progress.state.is_terminal()
    {
        return Ok(Some(stopped(&halt, count, false)));
    }
    if count == 0 {
        return Ok(None);
    }
    let head = load_head(connection, &batch.service_id)?;
    Ok(head.map(|head| in_order(head, count, false)))
}

fn in_order(head: StoredBatch, count: u64, more: bool) -> Ahead {
    Ahead { reason: WaitReason::Behind, head: Some(head), head_waits: false, count, more }
}

/// What is ahead of a batch if an invalid batch stops the service.
fn stopped(halt: &BlockerBatch, count: u64, more: bool) -> Ahead {
    let since = halt.halted_since.unwrap_or(halt.batch.created_at);
    let head = Some(halt.batch.clone());
    Ahead { reason: WaitReason::Halt { since }, head, head_waits: false, count, more }
}

/// The first invalid batch that stops others of a service with one lane.
fn load_halt(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<BlockerBatch>, StoreError> {
    let Some(seq) = load_first_halt(connection, service_id)? else { return Ok(None) };
    Ok(load_blockers(connection, BTreeSet::from([seq]))?.remove(&seq))
}

/// The batch of a service that is next or under way.
pub(super) fn load_head(
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

/// When the open batches of a service were stored, from `first` to before `end`, in order: at most one more than is
/// counted.
pub(crate) fn load_open_times(
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

/// How many open batches of its service come before a batch; at most one more than [`Ahead::MAX_COUNTED`].
pub(crate) fn count_ahead_to_limit(
    store: &Store,
    connection: &mut Connection,
    batch: &StoredBatch,
) -> Result<u64, StoreError> {
    if batch.progress.state.is_terminal() {
        return Ok(0);
    }
    let (service_id, created_at) = (&batch.service_id, batch.created_at);
    if let Some(mut by_pool) =
        store.scheduler.hooks().ahead(connection, service_id, &[created_at])?
    {
        return Ok(by_pool.pop().flatten().map_or(0, |ahead| ahead.count + u64::from(ahead.more)));
    }
    let Some(head) = load_head_time(connection, &batch.service_id)? else { return Ok(0) };
    let open = load_open_times(connection, &batch.service_id, head, batch.created_at)?;
    u64::try_from(open.len()).map_err(StoreError::corrupt)
}

/// When the oldest head of a service was stored.
pub(super) fn load_head_time(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let query = lanes::table
        .filter(lanes::service_id.eq(service_id.as_str()))
        .select(min(lanes::created_at));
    let found: Vec<Option<i64>> = connection.load_query("head_time", query)?;
    Ok(time(found.into_iter().next().flatten()))
}

/// How many open batches of its service come before a batch.
fn count_ahead(connection: &mut Connection, batch: &StoredBatch) -> Result<u64, StoreError> {
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
    single_count(&connection.load_query("count_ahead", query)?)
}
