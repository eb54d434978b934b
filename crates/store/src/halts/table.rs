//! The table of invalid batches that stop others.

use diesel::QueryableByName;
use grid_batch_core::{ServiceId, Timestamp};

use crate::{
    scheduling::{Positioned, PositionedBatch, number_of},
    sql::{
        Connection, Rows, Statement, StoreError, result_row,
        rows::{ServiceRow, limit, service_id},
    },
};

/// An invalid batch that stops others.
#[derive(Debug, Clone)]
pub(crate) struct StoredHalt {
    pub(crate) batch: Positioned,
    /// The last position of the batches that end because of it; `None`: an operator has not decided.
    pub(crate) ends_until: Option<i64>,
}

/// Why an invalid batch stops others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltOrigin {
    /// The policy of its service.
    Policy,
    /// It ended because it follows another invalid batch.
    Following,
}

impl HaltOrigin {
    /// The origin as it is stored.
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
    halts: &[(StoredHalt, HaltOrigin)],
    now: Timestamp,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_halts
         insert into halts (batch_seq, service_id, position, since, ends_until, origin, positioned)
         select batch_seq, service_id, position, since, ends_until, origin, true from {x}",
        Rows::default()
            .long("batch_seq", halts.iter().map(|(halt, _)| halt.batch.0))
            .text("service_id", halts.iter().map(|(halt, _)| halt.batch.1.as_str()))
            .long("position", halts.iter().map(|(halt, _)| halt.batch.2))
            .long("since", halts.iter().map(|_| now.as_micros()))
            .optional_long("ends_until", halts.iter().map(|(halt, _)| halt.ends_until))
            .text("origin", halts.iter().map(|(_, origin)| origin.as_str())),
    )
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
    connection.execute_rows(
        "-- insert_halts_in_order
         insert into halts (batch_seq, service_id, position, since, origin, positioned)
         select b.seq, b.service_id, b.created_at, x.since, 'POLICY', false
         from {x} join batches b on b.seq = x.batch_seq",
        Rows::default()
            .long("batch_seq", halts.iter().copied())
            .long("since", halts.iter().map(|_| now.as_micros())),
    )
}

/// The halt of a batch, and whether its service has positions.
pub(super) fn load_halt(
    connection: &mut Connection,
    seq: i64,
) -> Result<Option<(StoredHalt, bool)>, StoreError> {
    let statement = Statement::new(
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
        "-- first_halt
         select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
         where h.service_id = ? order by h.service_id, h.position limit 1",
    )
    .text(service_id.as_str());
    Ok(connection.load::<HaltRow>(&statement)?.first().map(|row| row.position))
}

/// For each of these batches, the last halt of its service before a position that applies to it.
pub(crate) fn find_last_before(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    before: &[(usize, i64)],
) -> Result<Vec<(usize, StoredHalt)>, StoreError> {
    let service = |number: usize| batches[number].service_id.as_str();
    let rows: Vec<NumberedRow> = connection.load_rows(
        "-- find_last_halt
         select x.number, h.batch_seq, h.service_id, h.position, h.ends_until
         from {x} join halts h on h.service_id = x.service_id and h.position = (
             select n.position from halts n
             where n.service_id = x.service_id and n.position < x.position
                 and coalesce(n.ends_until, x.own) >= x.own
             order by n.service_id desc, n.position desc limit 1)",
        Rows::default()
            .long("number", before.iter().map(|(number, _)| number_of(*number)))
            .text("service_id", before.iter().map(|(number, _)| service(*number)))
            .long("position", before.iter().map(|(_, before)| *before))
            .long("own", before.iter().map(|(number, _)| batches[*number].position)),
    )?;
    rows.into_iter()
        .map(|row| {
            Ok((usize::try_from(row.number).map_err(StoreError::corrupt)?, row.halt.read()?))
        })
        .collect()
}

/// Records an operator's decision that the batches that wait for this one, as stored now, end.
pub(crate) fn set_ends_until(
    connection: &mut Connection,
    seq: i64,
    ends_until: i64,
    origin: HaltOrigin,
) -> Result<(), StoreError> {
    let statement = Statement::new(
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
    connection.execute_rows(
        "-- remove_halts
         delete from halts where batch_seq in (select x.batch_seq from {x})",
        Rows::default().long("batch_seq", seqs),
    )
}

result_row! {
    struct HaltRow {
        batch_seq: i64,
        service_id: String,
        position: i64,
        ends_until: Option<i64>,
    }
}

impl HaltRow {
    fn read(self) -> Result<StoredHalt, StoreError> {
        let batch = (self.batch_seq, service_id(&self.service_id)?, self.position);
        Ok(StoredHalt { batch, ends_until: self.ends_until })
    }
}

result_row! {
    struct PositionedRow {
        positioned: bool,
        #[diesel(embed)]
        halt: HaltRow,
    }
}

result_row! {
    struct NumberedRow {
        number: i64,
        #[diesel(embed)]
        halt: HaltRow,
    }
}

/// Up to `count` halts of a service whose followers end, up to a position before this one.
pub(super) fn find_ending(
    connection: &mut Connection,
    service_id: &ServiceId,
    before: i64,
    count: usize,
) -> Result<Vec<StoredHalt>, StoreError> {
    let statement = Statement::new(
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

/// The next service after `after` in which an operator has ended the followers of an invalid batch and this is not
/// completed.
pub(super) fn next_service_that_ends(
    connection: &mut Connection,
    after: &str,
    positioned: bool,
) -> Result<Option<ServiceId>, StoreError> {
    let sql = if positioned {
        "-- next_service_that_ends
         select h.service_id from halts h
         where h.service_id > ? and h.ends_until is not null and h.positioned
         order by h.service_id limit 1"
    } else {
        "-- next_service_in_order_that_ends
         select h.service_id from halts h
         where h.service_id > ? and h.ends_until is not null and not h.positioned
         order by h.service_id limit 1"
    };
    let rows: Vec<ServiceRow> = connection.load(&Statement::new(sql).text(after))?;
    rows.first().map(ServiceRow::read).transpose()
}

/// Records that the followers of an invalid batch have ended up to this position.
pub(super) fn set_position(
    connection: &mut Connection,
    seq: i64,
    position: i64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- set_halt_position
         update halts set position = ? where batch_seq = ?",
    )
    .long(position)
    .long(seq);
    connection.execute(&statement).map(drop)
}
