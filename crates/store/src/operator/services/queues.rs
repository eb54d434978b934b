use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::{DltStatus, Timestamp};

use crate::sql::{
    Connection, StoreError,
    schema::{batches, lanes, services, waiting_batches, waiting_holds},
};

/// What the lanes of a service hold.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// How many batches have ended.
    pub(super) ended: i64,
    pub(super) under_way: u64,
    pub(super) in_doubt: u64,
    pub(super) held: u64,
    /// The error of a batch that could not be sent and is not held.
    pub(super) failing: Option<String>,
    /// Why a gate keeps a batch back that is not held.
    pub(super) parked: Option<String>,
    pub(super) oldest_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = lanes)]
struct LaneRow {
    service_id: String,
    ended: i64,
    created_at: Option<i64>,
    submitted: bool,
    dlt_status: Option<String>,
    delays: i32,
    last_error: Option<String>,
    held_at: Option<i64>,
}

impl LaneRow {
    fn has(&self, status: DltStatus) -> bool {
        self.dlt_status.as_deref() == Some(status.as_str())
    }

    /// Why the batch fails. The error of a batch that the ledger has by now is past, and a batch behind a closed
    /// gate has no failed attempt.
    fn failure(&self) -> Option<String> {
        if self.held_at.is_some() || self.has(DltStatus::Pending) || self.has(DltStatus::Valid) {
            return None;
        }
        let has_failed = self.delays > 0 || !self.has(DltStatus::Delayed);
        self.last_error.clone().filter(|_| has_failed)
    }

    /// Why a gate keeps the batch back. A gate that is closed ends a series of delays.
    fn closed_gate(&self) -> Option<String> {
        let is_parked = self.held_at.is_none() && self.has(DltStatus::Delayed) && self.delays == 0;
        self.last_error.clone().filter(|_| is_parked)
    }
}

pub(super) fn load_queues(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, Queue>, StoreError> {
    let query =
        lanes::table.filter(lanes::service_id.eq_any(names.to_vec())).select(LaneRow::as_select());
    let rows: Vec<LaneRow> = connection.load_query("lanes_of_services", query)?;
    let mut queues: HashMap<String, Queue> = HashMap::new();
    for row in rows {
        let (failure, closed_gate) = (row.failure(), row.closed_gate());
        let is_in_doubt = row.submitted && row.has(DltStatus::Unknown);
        let queue = queues.entry(row.service_id).or_default();
        queue.ended += row.ended;
        queue.under_way += u64::from(row.submitted);
        queue.in_doubt += u64::from(is_in_doubt);
        queue.held += u64::from(row.held_at.is_some());
        queue.failing = queue.failing.take().or(failure);
        queue.parked = queue.parked.take().or(closed_gate);
        let created_at = row.created_at.map(Timestamp::from_micros);
        queue.oldest_at = queue.oldest_at.into_iter().chain(created_at).min();
    }
    Ok(queues)
}

/// When the oldest batch of each service was stored that waits without a lane: one row is read for each.
pub(super) fn load_oldest_waiting(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, Timestamp>, StoreError> {
    let oldest = waiting_batches::table
        .filter(waiting_batches::service_id.eq(services::service_id))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(1)
        .select(waiting_batches::batch_seq)
        .single_value();
    let query = services::table
        .filter(services::service_id.eq_any(names.to_vec()))
        .select((services::service_id, oldest));
    let rows: Vec<(String, Option<i64>)> = connection.load_query("oldest_of_services", query)?;
    let seqs: Vec<i64> = rows.iter().filter_map(|(_, seq)| *seq).collect();
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let query = batches::table
        .filter(batches::seq.eq_any(seqs))
        .select((batches::service_id, batches::created_at));
    let rows: Vec<(String, i64)> = connection.load_query("times_of_oldest", query)?;
    Ok(rows.into_iter().map(|(name, at)| (name, Timestamp::from_micros(at))).collect())
}

/// How many batches of each service are held and wait behind others: of all that operators hold.
pub(super) fn load_waiting_holds(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    let query = waiting_holds::table
        .inner_join(batches::table)
        .filter(waiting_holds::batch_seq.gt(0))
        .filter(batches::ended_at.is_null())
        .select(batches::service_id);
    let held: Vec<String> = connection.load_query("services_of_waiting_holds", query)?;
    let mut counts = HashMap::new();
    for name in held.into_iter().filter(|name| names.contains(name)) {
        *counts.entry(name).or_insert(0) += 1;
    }
    Ok(counts)
}
