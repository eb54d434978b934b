//! Invalid batches that stop others, where the job has work: to end what follows, or to apply the policy.

use diesel::{QueryableByName, sql_types::Text};
use grid_batch_core::ServiceId;

use super::{
    Positioned,
    halts::{Halt, HaltRow},
};
use crate::sql::{
    Connection, Rows, Statement, StoreError,
    rows::{limit, service_id},
};

/// Up to `count` halts of a service where what follows ends, all up to a position before this one.
pub(crate) fn find_ending(
    connection: &mut Connection,
    service_id: &ServiceId,
    before: i64,
    count: usize,
) -> Result<Vec<Halt>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_ending_halts
         select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
         where h.service_id = ? and h.ends_until is not null and h.ends_until < ?
         order by h.service_id, h.ends_until limit ?",
    )
    .text(service_id.as_str())
    .long(before)
    .long(limit(count));
    let rows: Vec<HaltRow> = connection.load(&statement)?;
    rows.into_iter().map(HaltRow::read).collect()
}

/// The next service after `after` in which an operator has ended what follows, and that is not done.
pub(crate) fn next_service_that_ends(
    connection: &mut Connection,
    after: &str,
    positioned: bool,
) -> Result<Option<ServiceId>, StoreError> {
    let sql = match positioned {
        true => {
            "-- next_service_that_ends
             select h.service_id from halts h
             where h.service_id > ? and h.ends_until is not null and h.positioned
             order by h.service_id limit 1"
        }
        false => {
            "-- next_service_in_order_that_ends
             select h.service_id from halts h
             where h.service_id > ? and h.ends_until is not null and not h.positioned
             order by h.service_id limit 1"
        }
    };
    next_service(connection, sql, after)
}

/// The next service after `after` in which a command ended batches as invalid, and no server has applied the
/// policy.
pub(crate) fn next_service_without_policy(
    connection: &mut Connection,
    after: &str,
    positioned: bool,
) -> Result<Option<ServiceId>, StoreError> {
    let sql = match positioned {
        true => {
            "-- next_service_without_policy
             select h.service_id from halts h
             where h.service_id > ? and h.origin = 'COMMAND' and h.positioned
             order by h.service_id limit 1"
        }
        false => {
            "-- next_service_in_order_without_policy
             select h.service_id from halts h
             where h.service_id > ? and h.origin = 'COMMAND' and not h.positioned
             order by h.service_id limit 1"
        }
    };
    next_service(connection, sql, after)
}

/// Up to `count` batches of a service that a command ended as invalid, where no server has applied the
/// policy.
pub(crate) fn find_without_policy(
    connection: &mut Connection,
    service_id: &ServiceId,
    count: usize,
) -> Result<Vec<Positioned>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_halts_without_policy
         select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
         where h.service_id = ? and h.origin = 'COMMAND' order by h.service_id limit ?",
    )
    .text(service_id.as_str())
    .long(limit(count));
    let rows: Vec<HaltRow> = connection.load(&statement)?;
    rows.into_iter().map(|row| Ok(row.read()?.batch)).collect()
}

/// Batches that a command ended stop others, by the policy of their service.
pub(crate) fn set_policy_applied(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- set_policy_applied
         update halts set origin = 'POLICY'
         where batch_seq in (select x.batch_seq from {x})",
    )
    .rows(Rows::default().long("batch_seq", seqs));
    connection.execute(&statement).map(drop)
}

fn next_service(
    connection: &mut Connection,
    sql: &'static str,
    after: &str,
) -> Result<Option<ServiceId>, StoreError> {
    let statement = Statement::new(connection.dialect(), sql).text(after);
    let rows: Vec<ServiceRow> = connection.load(&statement)?;
    rows.first().map(|row| service_id(&row.service_id)).transpose()
}

/// What follows an invalid batch has ended up to this position.
pub(crate) fn set_position(
    connection: &mut Connection,
    seq: i64,
    position: i64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- set_halt_position
         update halts set position = ? where batch_seq = ?",
    )
    .long(position)
    .long(seq);
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct ServiceRow {
    #[diesel(sql_type = Text)]
    service_id: String,
}
