//! Where in the order of numbers the batches of a time are. No index has the times of all services.

use std::time::Duration;

use diesel::prelude::*;
use grid_batch_core::Timestamp;

use crate::sql::{Connection, StoreError, schema::batches};

/// A batch gets its time before its number, and intake may wait for locks in between. So batches this far from
/// a time in the order of numbers can be on the other side of it.
const MARGIN: Duration = Duration::from_secs(120);

/// The first number of batches that were stored at this time or later.
pub(super) fn first_number(
    connection: &mut Connection,
    from: Timestamp,
) -> Result<i64, StoreError> {
    seek(connection, from.minus(MARGIN))
}

/// The number after the last batch that was stored before this time.
pub(super) fn end_number(
    connection: &mut Connection,
    before: Timestamp,
) -> Result<i64, StoreError> {
    seek(connection, before.plus(MARGIN))
}

/// Finds by halving where the times reach this one. Each step reads one row.
fn seek(connection: &mut Connection, time: Timestamp) -> Result<i64, StoreError> {
    let Some((mut low, _)) = first_from(connection, 0)? else { return Ok(0) };
    let mut end = last_number(connection)?.saturating_add(1);
    while low < end {
        let middle = low + (end - low) / 2;
        match first_from(connection, middle)? {
            Some((seq, created_at)) if created_at < time.as_micros() => low = seq + 1,
            _ => end = middle,
        }
    }
    Ok(low)
}

fn first_from(connection: &mut Connection, seq: i64) -> Result<Option<(i64, i64)>, StoreError> {
    let query = batches::table
        .filter(batches::seq.ge(seq))
        .order_by(batches::seq)
        .limit(1)
        .select((batches::seq, batches::created_at));
    Ok(connection.load_query("first_from", query)?.into_iter().next())
}

fn last_number(connection: &mut Connection) -> Result<i64, StoreError> {
    let query = batches::table
        .filter(batches::seq.gt(0))
        .order_by(batches::seq.desc())
        .limit(1)
        .select(batches::seq);
    let found: Vec<i64> = connection.load_query("last_number", query)?;
    Ok(found.first().copied().unwrap_or(0))
}
