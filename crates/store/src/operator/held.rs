use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::{Hold, ServiceId, StoredBatch, Timestamp};

use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, into_batches, lane_holds_batch},
    rows::limit,
    schema::{batches, lanes, waiting_holds},
};

impl Store {
    /// Up to `count` held batches, ordered by the names of their services, from the service after
    /// `after`.
    pub fn held_batches(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let held = || {
            lanes::table
                .inner_join(batches::table.on(lane_holds_batch()))
                .filter(lanes::busy)
                .filter(lanes::held_at.is_not_null())
                .order_by((lanes::service_id, lanes::lane))
        };
        self.pools.read()?.snapshot(|connection| {
            let page = held()
                .filter(lanes::service_id.gt(after.map_or("", ServiceId::as_str)))
                .limit(limit(count))
                .select((lanes::lane, BatchRecord::as_select()));
            let page: Vec<(i32, BatchRecord)> = connection.load_query("held_batches", page)?;
            let last = page.last().map_or(0, |(lane, _)| *lane);
            let is_full = page.len() >= count;
            let mut batches = into_batches(page.into_iter().map(|(_, batch)| batch).collect())?;
            // The next page begins behind the last service.
            if let Some(batch) = batches.last().filter(|_| is_full) {
                let rest = held()
                    .filter(lanes::service_id.eq(batch.service_id.as_str()))
                    .filter(lanes::lane.gt(last))
                    .select(BatchRecord::as_select());
                let rest = connection.load_query("held_batches_of", rest)?;
                batches.extend(into_batches(rest)?);
            }
            Ok(batches)
        })
    }

    /// The batches that are held and wait behind another one of their service: the hold begins when it
    /// is their turn. In the order in which they were stored.
    pub fn waiting_holds(&self) -> Result<Vec<StoredBatch>, StoreError> {
        let query = waiting_holds::table
            .inner_join(batches::table.left_join(lanes::table.on(lane_holds_batch())))
            .filter(waiting_holds::batch_seq.gt(0))
            .filter(batches::ended_at.is_null())
            .order_by(waiting_holds::batch_seq)
            .select((waiting_holds::held_at, waiting_holds::held_reason, BatchRecord::as_select()));
        let rows: Vec<(i64, String, BatchRecord)> =
            self.pools.read()?.load_query("waiting_holds", query)?;
        rows.into_iter()
            .map(|(at, reason, record)| with_waiting_hold(record, Some(waiting_hold(at, reason))))
            .collect()
    }
}

/// A batch with its hold, which is not in its lane if it waits behind another one.
pub(crate) fn with_waiting_hold(
    record: BatchRecord,
    hold: Option<Hold>,
) -> Result<StoredBatch, StoreError> {
    let batch = record.into_batch()?;
    Ok(StoredBatch { held: batch.held.or(hold), ..batch })
}

/// The hold of a batch that waits behind another one.
pub(super) fn load_waiting_hold(
    connection: &mut Connection,
    seq: i64,
) -> Result<Option<Hold>, StoreError> {
    let query = waiting_holds::table
        .filter(waiting_holds::batch_seq.eq(seq))
        .select((waiting_holds::held_at, waiting_holds::held_reason));
    let holds: Vec<(i64, String)> = connection.load_query("waiting_hold", query)?;
    Ok(holds.into_iter().next().map(|(at, reason)| waiting_hold(at, reason)))
}

/// The holds of those of these batches that are held and wait behind others, by the batch's number.
pub(crate) fn waiting_holds_of(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<HashMap<i64, Hold>, StoreError> {
    let query = waiting_holds::table.filter(waiting_holds::batch_seq.eq_any(seqs)).select((
        waiting_holds::batch_seq,
        waiting_holds::held_at,
        waiting_holds::held_reason,
    ));
    let holds: Vec<(i64, i64, String)> = connection.load_query("waiting_holds_of", query)?;
    Ok(holds.into_iter().map(|(seq, at, reason)| (seq, waiting_hold(at, reason))).collect())
}

/// The hold that a row of `waiting_holds` has.
pub(super) fn waiting_hold(held_at: i64, reason: String) -> Hold {
    Hold { since: Timestamp::from_micros(held_at), reason, until_decision: true }
}
