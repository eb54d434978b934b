//! The batches that wait with others by what they declare. They may be older than those in the lanes of
//! their service, which may have none in a lane.

use diesel::{
    dsl::{count_star, exists, not, sql},
    prelude::*,
    sql_types::{BigInt, Bool, Text},
};
use grid_batch_core::{PageCursor, ServiceId, StoredBatch, Timestamp};

use crate::sql::{
    Connection, StoreError,
    query::{BatchRecord, into_batches, lane_holds_batch, single_count},
    rows::{limit, time},
    schema::{batches, lanes, waiting_batches},
};

/// A page of the waiting batches, in the order of their services and times: their numbers have the same
/// order.
pub(super) fn list_waiting(
    connection: &mut Connection,
    service_id: Option<&ServiceId>,
    after: Option<&PageCursor>,
    count: usize,
) -> Result<Vec<StoredBatch>, StoreError> {
    let mut page = waiting_batches::table
        .inner_join(batches::table.left_join(lanes::table.on(lane_holds_batch())))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(limit(count))
        .select(BatchRecord::as_select())
        .into_boxed();
    if let Some(service_id) = service_id {
        page = page.filter(waiting_batches::service_id.eq(service_id.as_str()));
    }
    if let Some(cursor) = after {
        page = page.filter(
            sql::<Bool>("(waiting_batches.service_id, waiting_batches.batch_seq) > (")
                .bind::<Text, _>(cursor.service_id.as_str())
                .sql(", ")
                .bind::<BigInt, _>(last_seq(connection, cursor)?)
                .sql(")"),
        );
    }
    into_batches(connection.load_query("list_waiting", page)?)
}

/// The number of the last batch of a service that a page before had.
fn last_seq(connection: &mut Connection, cursor: &PageCursor) -> Result<i64, StoreError> {
    let query = batches::table
        .filter(batches::service_id.eq(cursor.service_id.as_str()))
        .filter(batches::created_at.le(cursor.created_at.as_micros()))
        .order_by((batches::service_id.desc(), batches::created_at.desc()))
        .limit(1)
        .select(batches::seq);
    let found: Vec<i64> = connection.load_query("last_seq", query)?;
    Ok(found.first().copied().unwrap_or(0))
}

/// How many batches wait that are older than all in the lanes of their service.
pub(super) fn count_before_heads(
    connection: &mut Connection,
    service_id: Option<&ServiceId>,
) -> Result<u64, StoreError> {
    let older_head = lanes::table
        .filter(lanes::service_id.eq(waiting_batches::service_id))
        .filter(lanes::busy)
        .filter(lanes::created_at.lt(batches::created_at.nullable()));
    let mut query = waiting_batches::table
        .inner_join(batches::table)
        .filter(not(exists(older_head)))
        .select(count_star())
        .into_boxed();
    if let Some(service_id) = service_id {
        query = query.filter(waiting_batches::service_id.eq(service_id.as_str()));
    }
    let counts: Vec<i64> = connection.load_query("count_before_heads", query)?;
    single_count(&counts)
}

/// When the oldest waiting batch of a service was stored.
pub(super) fn oldest_waiting(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let query = waiting_batches::table
        .inner_join(batches::table)
        .filter(waiting_batches::service_id.eq(service_id.as_str()))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(1)
        .select(batches::created_at);
    let found: Vec<i64> = connection.load_query("oldest_waiting", query)?;
    Ok(time(found.first().copied()))
}
