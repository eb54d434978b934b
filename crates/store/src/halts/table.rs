//! The table of invalid batches that stop others.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Nullable, Text},
};
use grid_batch_core::{ServiceId, Timestamp};

use crate::{
    scheduling::{Positioned, PositionedBatch, number_of},
    sql::{
        Connection, Rows, Statement, StoreError,
        rows::{ServiceRow, limit, service_id},
    },
};

/// An invalid batch that stops others.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    pub(crate) batch: Positioned,
    /// The last position of what ends because of it; `None`: an operator has not decided.
    pub(crate) ends_until: Option<i64>,
}

/// Why an invalid batch stops others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltOrigin {
    /// By the policy of its service.
    Policy,
    /// It follows another invalid batch, and ended for that.
    Following,
}

impl HaltOrigin {
    /// As it is stored.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "POLICY",
            Self::Following => "FOLLOWING",
        }
    }
}

/// Records invalid batches that stop others.
pub(super) fn insert_halts(
    connection: &mut Connection,
    halts: &[(Halt, HaltOrigin)],
    now: Timestamp,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_halts
         insert into halts (batch_seq, service_id, position, since, ends_until, origin, positioned)
         select batch_seq, service_id, position, since, ends_until, origin, true from {x}",
    )
    .rows(
        Rows::default()
            .long("batch_seq", halts.iter().map(|(halt, _)| halt.batch.0))
            .text("service_id", halts.iter().map(|(halt, _)| halt.batch.1.as_str()))
            .long("position", halts.iter().map(|(halt, _)| halt.batch.2))
            .long("since", halts.iter().map(|_| now.as_micros()))
            .optional_long("ends_until", halts.iter().map(|(halt, _)| halt.ends_until))
            .text("origin", halts.iter().map(|(_, origin)| origin.as_str())),
    );
    connection.execute(&statement).map(drop)
}

/// Records invalid batches that stop others in services with one lane.
pub(super) fn insert_halts_in_order(
    connection: &mut Connection,
    halts: &[i64],
    now: Timestamp,
) -> Result<(), StoreError> {
    if halts.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_halts_in_order
         insert into halts (batch_seq, service_id, position, since, origin, positioned)
         select b.seq, b.service_id, b.created_at, x.since, 'POLICY', false
         from {x} join batches b on b.seq = x.batch_seq",
    )
    .rows(
        Rows::default()
            .long("batch_seq", halts.iter().copied())
            .long("since", halts.iter().map(|_| now.as_micros())),
    );
    connection.execute(&statement).map(drop)
}

/// The halt of a batch, and whether its service has positions.
pub(super) fn load_halt(
    connection: &mut Connection,
    seq: i64,
) -> Result<Option<(Halt, bool)>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- load_halt
         select h.batch_seq, h.service_id, h.position, h.ends_until, h.positioned from halts h
         where h.batch_seq = ?",
    )
    .long(seq);
    let rows: Vec<PositionedRow> = connection.load(&statement)?;
    rows.into_iter().next().map(|row| Ok((row.halt.read()?, row.positioned))).transpose()
}

/// The position of the first batch that stops a service that submits in order.
pub(crate) fn first_halt(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- first_halt
         select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
         where h.service_id = ? order by h.service_id, h.position limit 1",
    )
    .text(service_id.as_str());
    Ok(connection.load::<HaltRow>(&statement)?.first().map(|row| row.position))
}

/// The last halt of the service of each of these batches before a position, that is about it.
pub(crate) fn find_last_before(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    before: &[(usize, i64)],
) -> Result<Vec<(usize, Halt)>, StoreError> {
    let service = |number: usize| batches[number].service_id.as_str();
    let statement = Statement::new(
        connection.dialect(),
        "-- find_last_halt
         select x.number, h.batch_seq, h.service_id, h.position, h.ends_until
         from {x} join halts h on h.service_id = x.service_id and h.position = (
             select n.position from halts n
             where n.service_id = x.service_id and n.position < x.position
                 and coalesce(n.ends_until, x.own) >= x.own
             order by n.service_id desc, n.position desc limit 1)",
    )
    .rows(
        Rows::default()
            .long("number", before.iter().map(|(number, _)| number_of(*number)))
            .text("service_id", before.iter().map(|(number, _)| service(*number)))
            .long("position", before.iter().map(|(_, before)| *before))
            .long("own", before.iter().map(|(number, _)| batches[*number].position)),
    );
    let rows: Vec<NumberedRow> = connection.load(&statement)?;
    rows.into_iter()
        .map(|row| {
            Ok((usize::try_from(row.number).map_err(StoreError::corrupt)?, row.halt.read()?))
        })
        .collect()
}

/// An operator has decided that what waits for this batch ends, as far as it is stored now.
pub(crate) fn set_ends_until(
    connection: &mut Connection,
    seq: i64,
    ends_until: i64,
    origin: HaltOrigin,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- set_ends_until
         update halts set ends_until = ?, origin = ? where batch_seq = ?",
    )
    .long(ends_until)
    .text(origin.as_str())
    .long(seq);
    connection.execute(&statement).map(drop)
}

/// Removes halts.
pub(super) fn remove_halts(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- remove_halts
         delete from halts where batch_seq in (select x.batch_seq from {x})",
    )
    .rows(Rows::default().long("batch_seq", seqs));
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct HaltRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    ends_until: Option<i64>,
}

impl HaltRow {
    fn read(self) -> Result<Halt, StoreError> {
        let batch = (self.batch_seq, service_id(&self.service_id)?, self.position);
        Ok(Halt { batch, ends_until: self.ends_until })
    }
}

#[derive(QueryableByName)]
struct PositionedRow {
    #[diesel(embed)]
    halt: HaltRow,
    #[diesel(sql_type = Bool)]
    positioned: bool,
}

#[derive(QueryableByName)]
struct NumberedRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(embed)]
    halt: HaltRow,
}

/// Up to `count` halts of a service where what follows ends, all up to a position before this one.
pub(super) fn find_ending(
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
pub(super) fn next_service_that_ends(
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

fn next_service(
    connection: &mut Connection,
    sql: &'static str,
    after: &str,
) -> Result<Option<ServiceId>, StoreError> {
    let statement = Statement::new(connection.dialect(), sql).text(after);
    let rows: Vec<ServiceRow> = connection.load(&statement)?;
    rows.first().map(ServiceRow::read).transpose()
}

/// What follows an invalid batch has ended up to this position.
pub(super) fn set_position(
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
