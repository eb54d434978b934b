//! The index of what open batches declare.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Nullable},
};
use grid_batch_core::{DeclaredAccess, ServiceId};

use super::{
    PositionedBatch,
    access::{Entry, IndexedAccess},
    lengths::{self, Lengths, ServiceLengths},
    positioned::decode,
};
use crate::sql::{Connection, Rows, Statement, StoreError};

/// Inserts the rows of batches that got their positions.
pub(super) fn insert(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    lengths: &ServiceLengths,
) -> Result<(), StoreError> {
    let rows = rows_of(batches, lengths);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_declared_addresses
         insert into declared_addresses (service_id, address, kind, position, batch_seq)
         select service_id, address, kind, position, batch_seq from {x}",
    )
    .rows(key_rows(&rows).long("batch_seq", rows.iter().map(|(batch, _)| batch.seq)));
    connection.execute(&statement).map(drop)
}

/// Removes the rows of batches that have ended, by their keys. Lengths that came into use since a batch
/// was stored only name rows that it does not have.
pub(crate) fn remove_addresses(
    connection: &mut Connection,
    ended: &[PositionedBatch],
) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let lengths = lengths::load(connection, ended.iter().map(|batch| &batch.service_id))?;
    let rows = rows_of(ended, &lengths);
    let statement = Statement::new(
        connection.dialect(),
        "-- remove_declared_addresses
         delete from declared_addresses where (service_id, address, kind, position) in (
             select x.service_id, x.address, x.kind, x.position from {x})",
    )
    .rows(key_rows(&rows));
    connection.execute(&statement)?;
    lengths::remove_unused(connection, &lengths)
}

/// What batches declare, with their positions.
pub(crate) fn find_declared(
    connection: &mut Connection,
    batches: &[(i64, ServiceId, i64)],
) -> Result<Vec<PositionedBatch>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_declared
         select p.batch_seq, p.declared_access
         from {x} join batch_payloads p on p.batch_seq = x.batch_seq",
    )
    .rows(Rows::default().long("batch_seq", batches.iter().map(|(seq, ..)| *seq)));
    let rows: Vec<DeclaredRow> = connection.load(&statement)?;
    let mut declared: HashMap<i64, DeclaredAccess> = rows
        .iter()
        .map(|row| Ok((row.batch_seq, decode(row.declared_access.as_deref())?)))
        .collect::<Result<_, StoreError>>()?;
    let positioned = |(seq, service_id, position): &(i64, ServiceId, i64)| {
        let access = declared.remove(seq);
        let access = access.ok_or_else(|| StoreError::corrupt("a batch without bytes"))?;
        Ok(PositionedBatch {
            seq: *seq,
            service_id: service_id.clone(),
            position: *position,
            access,
        })
    };
    batches.iter().map(positioned).collect()
}

type IndexRow<'a> = (&'a PositionedBatch, Entry);

fn rows_of<'a>(batches: &'a [PositionedBatch], lengths: &ServiceLengths) -> Vec<IndexRow<'a>> {
    let none = Lengths::default();
    let rows = |batch: &'a PositionedBatch| {
        let lengths = lengths.get(&batch.service_id).unwrap_or(&none);
        let rows = IndexedAccess::of(&batch.access, lengths).rows(lengths);
        rows.into_iter().map(move |entry| (batch, entry))
    };
    batches.iter().flat_map(rows).collect()
}

fn key_rows<'r>(rows: &'r [IndexRow<'_>]) -> Rows<'r> {
    Rows::default()
        .text("service_id", rows.iter().map(|(batch, _)| batch.service_id.as_str()))
        .text("address", rows.iter().map(|(_, (address, _))| address.as_str()))
        .int("kind", rows.iter().map(|(_, (_, kind))| kind.as_i32()))
        .long("position", rows.iter().map(|(batch, _)| batch.position))
}

#[derive(QueryableByName)]
struct DeclaredRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Nullable<Binary>)]
    declared_access: Option<Vec<u8>>,
}
