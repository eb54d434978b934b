//! Batches in lanes of a service that submits in order, behind an invalid batch.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool},
};
use grid_batch_core::{ItemId, ServiceId};

use super::Positioned;
use crate::sql::{
    Connection, Statement, StoreError,
    rows::{batch_id, limit},
};

/// A batch in a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InLane {
    pub(crate) batch_seq: i64,
    /// In the order of its service.
    pub(crate) position: i64,
    pub(crate) batch_id: ItemId,
    /// It is with a submitter or may be at the ledger.
    pub(crate) submitted: bool,
    /// It was found to be absent, but an earlier attempt may still arrive at the ledger.
    pub(crate) may_arrive: bool,
    pub(crate) held: bool,
}

/// The batches in lanes of a service with positions after `after` and up to `until`.
pub(crate) fn find_in_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    (after, until): (i64, i64),
) -> Result<Vec<InLane>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_following_in_lanes
         select s.batch_seq, coalesce(s.position, s.created_at) as position, s.batch_id, s.submitted,
             s.earlier_may_arrive, s.held_until_decision
         from lanes s
         where s.service_id = ? and s.busy and coalesce(s.position, s.created_at) > ?
             and coalesce(s.position, s.created_at) <= ?",
    )
    .text(service_id.as_str())
    .long(after)
    .long(until);
    let rows: Vec<InLaneRow> = connection.load(&statement)?;
    rows.iter().map(InLaneRow::read).collect()
}

/// Up to `count` open batches of a service with one lane that were stored after `after` and up to `until`, in
/// order.
pub(crate) fn find_open_behind(
    connection: &mut Connection,
    service_id: &ServiceId,
    (after, until): (i64, i64),
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_open_behind
         select b.seq, b.created_at from batches b
         where b.service_id = ? and b.created_at > ? and b.created_at <= ? and b.ended_at is null
         order by b.service_id, b.created_at limit ?",
    )
    .text(service_id.as_str())
    .long(after)
    .long(until)
    .long(limit(count));
    let rows: Vec<OpenRow> = connection.load(&statement)?;
    Ok(rows.iter().map(|row| (row.seq, service_id.clone(), row.created_at)).collect())
}

#[derive(QueryableByName)]
struct OpenRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

#[derive(QueryableByName)]
struct InLaneRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Bool)]
    submitted: bool,
    #[diesel(sql_type = Bool)]
    earlier_may_arrive: bool,
    #[diesel(sql_type = Bool)]
    held_until_decision: bool,
}

impl InLaneRow {
    fn read(&self) -> Result<InLane, StoreError> {
        Ok(InLane {
            batch_seq: self.batch_seq,
            position: self.position,
            batch_id: batch_id(&self.batch_id)?,
            submitted: self.submitted,
            may_arrive: self.earlier_may_arrive,
            held: self.held_until_decision,
        })
    }
}
