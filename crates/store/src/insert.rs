use std::collections::{BTreeMap, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{HeaderId, NewBatch, Timestamp};

use crate::{
    StoreError,
    connection::Connection,
    dialect::Dialect,
    stamps::Stamps,
    statement::{Rows, Statement},
};

/// Inserts batches that are new, and lets them wait their turn; answers their numbers.
pub(crate) fn insert(
    connection: &mut Connection,
    batches: &[&NewBatch],
    stamps: &mut Stamps<'_>,
) -> Result<Vec<i64>, StoreError> {
    let dialect = connection.dialect();
    let stamped: Vec<(&NewBatch, Timestamp)> =
        batches.iter().map(|batch| (*batch, stamps.take(batch.service_id.as_str()))).collect();
    let rows: Vec<InsertedRow> = connection.load(&insert_batches(dialect, &stamped))?;
    let seqs: HashMap<(&str, i64), i64> =
        rows.iter().map(|row| ((row.service_id.as_str(), row.created_at), row.seq)).collect();
    let placed = stamped
        .into_iter()
        .map(|(batch, created_at)| {
            let place = (batch.service_id.as_str(), created_at.as_micros());
            let seq = seqs.get(&place).copied();
            let seq = seq.ok_or_else(|| StoreError::corrupt("no row for a batch just inserted"))?;
            Ok(Placed { batch, created_at, seq })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    connection.execute(&insert_payloads(dialect, &placed))?;
    connection.execute(&insert_transactions(dialect, &placed))?;
    connection.execute(&install_first_heads(dialect, &placed))?;
    Ok(placed.iter().map(|placed| placed.seq).collect())
}

fn insert_batches<'a>(dialect: Dialect, stamped: &[(&'a NewBatch, Timestamp)]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- insert_batches
         insert into batches (service_id, batch_id, created_at)
         select service_id, batch_id, created_at from {x} where true
         order by service_id, created_at
         returning seq, service_id, created_at",
    )
    .rows(
        keys(stamped.iter().map(|(batch, _)| *batch))
            .long("created_at", stamped.iter().map(|(_, created_at)| created_at.as_micros())),
    )
}

fn insert_payloads<'a>(dialect: Dialect, placed: &[Placed<'a>]) -> Statement<'a> {
    Statement::new(
        dialect,
        "-- insert_payloads
         insert into batch_payloads (batch_seq, serialized_batch)
         select batch_seq, serialized_batch from {x}",
    )
    .rows(Rows::default().long("batch_seq", placed.iter().map(|placed| placed.seq)).bytes(
        "serialized_batch",
        placed.iter().map(|placed| placed.batch.serialized_batch.as_slice()),
    ))
}

fn insert_transactions<'a>(dialect: Dialect, placed: &[Placed<'a>]) -> Statement<'a> {
    let transactions: Vec<(i64, i32, &'a HeaderId)> = placed
        .iter()
        .flat_map(|placed| {
            (0..)
                .zip(&placed.batch.transaction_ids)
                .map(|(position, id)| (placed.seq, position, id))
        })
        .collect();
    Statement::new(
        dialect,
        "-- insert_transactions
         insert into transactions (batch_seq, position, transaction_id)
         select batch_seq, position, transaction_id from {x}",
    )
    .rows(
        Rows::default()
            .long("batch_seq", transactions.iter().map(|row| row.0))
            .int("position", transactions.iter().map(|row| row.1))
            .bytes("transaction_id", transactions.iter().map(|row| &row.2.as_bytes()[..])),
    )
}

/// Where a service had no open batch, the first of the new ones becomes its head.
fn install_first_heads<'a>(dialect: Dialect, placed: &[Placed<'a>]) -> Statement<'a> {
    let mut first: BTreeMap<&'a str, &Placed<'a>> = BTreeMap::new();
    for placed in placed {
        first.entry(placed.batch.service_id.as_str()).or_insert(placed);
    }
    let heads = || first.values();
    Statement::new(
        dialect,
        "-- install_first_heads
         update batch_statuses as s
         set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at
         from {x}
         where s.service_id = x.service_id and s.lane = 0 and s.batch_seq is null",
    )
    .rows(
        keys(heads().map(|head| head.batch))
            .long("batch_seq", heads().map(|head| head.seq))
            .long("created_at", heads().map(|head| head.created_at.as_micros())),
    )
}

/// The columns by which batches are matched.
pub(crate) fn keys<'a>(batches: impl Iterator<Item = &'a NewBatch> + Clone) -> Rows<'a> {
    Rows::default()
        .text("service_id", batches.clone().map(|batch| batch.service_id.as_str()))
        .bytes("batch_id", batches.map(|batch| &batch.batch_id.as_bytes()[..]))
}

/// A batch with its place in the order of its service.
struct Placed<'a> {
    batch: &'a NewBatch,
    created_at: Timestamp,
    seq: i64,
}

#[derive(QueryableByName)]
struct InsertedRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}
