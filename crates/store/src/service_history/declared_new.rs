use grid_batch_core::NewBatch;

use crate::sql::{Connection, Rows, Statement, StoreError};

/// Records which of these batches their clients declare to be new.
pub(crate) fn insert_declared_new<'a>(
    connection: &mut Connection,
    batches: impl Iterator<Item = (i64, &'a NewBatch)>,
) -> Result<(), StoreError> {
    let seqs = batches.filter(|(_, batch)| batch.declared_new).map(|(seq, _)| seq);
    declare_new(connection, seqs.collect())
}

/// Records that these batches were never committed before.
pub(crate) fn declare_new(connection: &mut Connection, seqs: Vec<i64>) -> Result<(), StoreError> {
    if seqs.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- declare_new
         insert into declared_new_batches (batch_seq) select batch_seq from {x} where true
         on conflict (batch_seq) do nothing",
    )
    .rows(Rows::default().long("batch_seq", seqs).in_chunks());
    connection.execute(&statement).map(drop)
}
