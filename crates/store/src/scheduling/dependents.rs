//! The batches that wait for a batch.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::ServiceId;

use crate::sql::{
    Connection, Rows, Statement, StoreError,
    rows::{limit, service_id, service_rows},
};

/// A batch with its service and position.
pub(crate) type Positioned = (i64, ServiceId, i64);

/// Batches that wait for some other ones.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    /// Each with the batch that it waits for.
    pub(crate) waiting: Vec<(i64, Positioned)>,
    /// Whether there may be more.
    pub(crate) more: bool,
}

/// Up to `count` waiting batches that wait for these, in the order of their positions for each; and all
/// in the lanes of these services.
pub(crate) fn find_dependents(
    connection: &mut Connection,
    blockers: &[i64],
    services: &BTreeSet<ServiceId>,
    count: usize,
) -> Result<Dependents, StoreError> {
    // The rows come in the order of the index. Sorting would read all of them.
    let statement = Statement::new(
        connection.dialect(),
        "-- find_dependents
         select w.blocker_seq, w.batch_seq, w.service_id, w.position
         from {x} join waiting_batches w on w.blocker_seq = x.batch_seq
         limit ?",
    )
    .rows(Rows::default().long("batch_seq", blockers.iter().copied()))
    .long(limit(count));
    let mut rows: Vec<DependentRow> = connection.load(&statement)?;
    let more = rows.len() >= count;
    rows.truncate(count);
    rows.extend(find_in_lanes(connection, services, blockers)?);
    let waiting = rows.iter().map(DependentRow::read).collect::<Result<_, _>>()?;
    Ok(Dependents { waiting, more })
}

/// Up to `count` batches that wait for this one, from the one after a position and batch.
pub(crate) fn find_waiting_of(
    connection: &mut Connection,
    blocker: i64,
    after: (i64, i64),
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_waiting_of
         select w.blocker_seq, w.batch_seq, w.service_id, w.position
         from waiting_batches w
         where w.blocker_seq = ? and (w.position, w.batch_seq) > (?, ?)
         order by w.blocker_seq, w.position, w.batch_seq limit ?",
    )
    .long(blocker)
    .long(after.0)
    .long(after.1)
    .long(limit(count));
    let rows: Vec<DependentRow> = connection.load(&statement)?;
    rows.iter().map(|row| Ok(row.read()?.1)).collect()
}

/// The batches in lanes of these services that wait for one of these: the pipeline strategy sends a batch
/// while an earlier one that it conflicts with is under way.
fn find_in_lanes(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
    blockers: &[i64],
) -> Result<Vec<DependentRow>, StoreError> {
    let blockers: BTreeSet<i64> = blockers.iter().copied().collect();
    let statement = Statement::new(
        connection.dialect(),
        "-- find_dependents_in_lanes
         select s.blocker_seq, s.batch_seq, s.service_id, s.position
         from {x} join lanes s on s.service_id = x.service_id
         where s.busy and s.blocker_seq is not null",
    )
    .rows(service_rows(services));
    let rows: Vec<DependentRow> = connection.load(&statement)?;
    Ok(rows.into_iter().filter(|row| blockers.contains(&row.blocker_seq)).collect())
}

#[derive(QueryableByName)]
struct DependentRow {
    #[diesel(sql_type = BigInt)]
    blocker_seq: i64,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    position: i64,
}

impl DependentRow {
    fn read(&self) -> Result<(i64, Positioned), StoreError> {
        Ok((self.blocker_seq, (self.batch_seq, service_id(&self.service_id)?, self.position)))
    }
}
