//! The rows of batches that are in no lane.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use grid_batch_core::ServiceId;
use grid_batch_core::queue::BlockedBy;

use super::{Blocker, Positioned, PositionedBatch};
use crate::{
    missing::IncompleteBatch,
    sql::{
        Connection, Rows, Statement, StoreError, result_row,
        rows::{limit, service_id, service_rows},
    },
};

/// Inserts batches that got their positions.
pub(super) fn insert(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    blockers: &HashMap<i64, Blocker>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_waiting_batches
         insert into waiting_batches
             (batch_seq, service_id, position, blocker_seq, depends_on_blocker)
         select batch_seq, service_id, position, blocker_seq, depends_on_blocker from {x}",
        blocker_rows(batches, blockers)
            .text("service_id", batches.iter().map(|batch| batch.service_id.as_str()))
            .long("position", batches.iter().map(|batch| batch.position)),
    )
}

/// Inserts batches that have no position yet.
pub(super) fn insert_unpositioned<'a>(
    connection: &mut Connection,
    batches: impl Iterator<Item = &'a PositionedBatch> + Clone,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_unplaced_batches
         insert into waiting_batches (batch_seq, service_id)
         select batch_seq, service_id from {x}",
        Rows::default()
            .long("batch_seq", batches.clone().map(|batch| batch.seq))
            .text("service_id", batches.map(|batch| batch.service_id.as_str())),
    )
}

/// Writes the positions of batches and what they wait for.
pub(super) fn write_positions(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    blockers: &HashMap<i64, Blocker>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- write_places
         update waiting_batches as w
         set position = x.position, blocker_seq = x.blocker_seq,
             depends_on_blocker = x.depends_on_blocker
         from {x} where w.batch_seq = x.batch_seq",
        blocker_rows(batches, blockers)
            .long("position", batches.iter().map(|batch| batch.position)),
    )
}

/// Writes what batches wait for now. For a batch in a lane, it is written to the lane.
pub(crate) fn write_blockers(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    blockers: &HashMap<i64, Blocker>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- write_blockers
         update waiting_batches as w
         set blocker_seq = x.blocker_seq, depends_on_blocker = x.depends_on_blocker
         from {x} where w.batch_seq = x.batch_seq",
    )
    .rows(blocker_rows(batches, blockers));
    if connection.execute(&statement)? == batches.len() {
        return Ok(());
    }
    connection.execute_rows(
        "-- write_blockers_in_lanes
         update lanes set blocker_seq = x.blocker_seq
         from {x} where lanes.service_id = x.service_id and lanes.batch_seq = x.batch_seq",
        blocker_rows(batches, blockers)
            .text("service_id", batches.iter().map(|batch| batch.service_id.as_str())),
    )
}

fn blocker_rows<'a>(batches: &'a [PositionedBatch], blockers: &HashMap<i64, Blocker>) -> Rows<'a> {
    let of = |batch: &PositionedBatch| blockers.get(&batch.seq);
    let is_dependency =
        |batch: &PositionedBatch| of(batch).is_some_and(|blocker| blocker.is_dependency);
    Rows::default()
        .long("batch_seq", batches.iter().map(|batch| batch.seq))
        .optional_long("blocker_seq", batches.iter().map(|it| of(it).map(|blocker| blocker.seq)))
        .bool("depends_on_blocker", batches.iter().map(is_dependency))
}

/// Removes the rows of batches that were installed in lanes or have ended.
pub(crate) fn remove_waiting(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- remove_waiting_batches
         delete from waiting_batches where batch_seq in (select x.batch_seq from {x})",
        Rows::default().long("batch_seq", seqs),
    )
}

/// Up to `count` waiting batches of a service with positions after `after` and up to `until`, in order.
pub(crate) fn find_waiting_in_order(
    connection: &mut Connection,
    service_id: &ServiceId,
    after: i64,
    until: i64,
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        "-- find_waiting_in_order
         select w.batch_seq, w.position from waiting_batches w
         where w.service_id = ? and w.position is not null and w.position > ? and w.position <= ?
         order by w.service_id, w.position limit ?",
    )
    .text(service_id.as_str())
    .long(after)
    .long(until)
    .long(limit(count));
    let rows: Vec<(i64, i64)> = connection.load_tuples(&statement)?;
    Ok(rows.into_iter().map(|(seq, position)| (seq, service_id.clone(), position)).collect())
}

/// The positions of those of these batches that wait; `None` for one without a position.
pub(crate) fn load_positions(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<HashMap<i64, Option<i64>>, StoreError> {
    let rows: Vec<(i64, Option<i64>)> = connection.load_row_tuples(
        "-- load_positions
         select w.batch_seq, w.position
         from {x} join waiting_batches w on w.batch_seq = x.batch_seq",
        Rows::default().long("batch_seq", seqs),
    )?;
    Ok(rows.into_iter().collect())
}

/// Those of these batches that wait without a position.
pub(super) fn still_unpositioned(
    connection: &mut Connection,
    batches: &[IncompleteBatch],
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let statement = Statement::new(
        "-- still_unplaced
         select w.batch_seq from {x} join waiting_batches w on w.batch_seq = x.batch_seq
         where w.position is null",
    )
    .rows(Rows::default().long("batch_seq", batches.iter().map(|(seq, _)| *seq)));
    let unpositioned: HashSet<i64> = connection.load_column(&statement)?.into_iter().collect();
    Ok(batches.iter().filter(|(seq, _)| unpositioned.contains(seq)).cloned().collect())
}

/// How many batches of services have no position.
pub(crate) fn count_incomplete(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
) -> Result<BTreeMap<ServiceId, u64>, StoreError> {
    let rows: Vec<(String, i64)> = connection.load_row_tuples(
        "-- count_incomplete_of_services
         select x.service_id, (
             select count(*) from waiting_batches w
             where w.service_id = x.service_id and w.position is null) as count
         from {x}",
        service_rows(services),
    )?;
    rows.iter().map(|(service, count)| Ok((service_id(service)?, count.unsigned_abs()))).collect()
}

result_row! {
    /// A waiting batch, with the data that a lane needs.
    pub(super) struct WaitingRow {
        pub(super) batch_seq: i64,
        pub(super) position: i64,
        pub(super) blocker_seq: Option<i64>,
        pub(super) depends_on_blocker: bool,
        pub(super) batch_id: Vec<u8>,
        pub(super) created_at: i64,
    }
}

impl WaitingRow {
    pub(super) fn blocked_by(&self) -> Option<BlockedBy> {
        blocked_by(self.batch_seq, self.blocker_seq, self.depends_on_blocker)
    }
}

/// Why a batch with this blocker waits. While the ledger is asked about a missing transaction, the batch is its own
/// blocker.
pub(crate) fn blocked_by(
    batch_seq: i64,
    blocker_seq: Option<i64>,
    depends_on_blocker: bool,
) -> Option<BlockedBy> {
    let blocker_seq = blocker_seq?;
    Some(if blocker_seq == batch_seq {
        BlockedBy::Missing
    } else if depends_on_blocker {
        BlockedBy::Dependency
    } else {
        BlockedBy::Conflict
    })
}

/// Up to `count` batches of a service that do not wait for another batch, in order.
pub(super) fn first_free(
    connection: &mut Connection,
    service_id: &ServiceId,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    load_first(connection, "-- first_free", " and w.blocker_seq is null", service_id, count)
}

/// Up to `count` batches of a service that wait for another batch, in order.
pub(super) fn first_waiting_blocked(
    connection: &mut Connection,
    service_id: &ServiceId,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    load_first(
        connection,
        "-- first_waiting_blocked",
        " and w.blocker_seq is not null",
        service_id,
        count,
    )
}

/// Up to `count` waiting batches of a service, in order.
pub(super) fn first_waiting(
    connection: &mut Connection,
    service_id: &ServiceId,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    load_first(connection, "-- first_waiting", "", service_id, count)
}

/// Up to `count` waiting batches with a position for which the condition holds, in order.
fn load_first(
    connection: &mut Connection,
    name: &str,
    condition: &str,
    service_id: &ServiceId,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    let statement = Statement::new(format!(
        "{name}
         select w.batch_seq, w.position, w.blocker_seq, w.depends_on_blocker, b.batch_id, b.created_at
         from waiting_batches w join batches b on b.seq = w.batch_seq
         where w.service_id = ? and w.position is not null{condition}
         order by w.service_id, w.position limit ?"
    ));
    connection.load(&statement.text(service_id.as_str()).long(limit(count)))
}
