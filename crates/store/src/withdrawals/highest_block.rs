use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};

use super::rows::whole;
use crate::sql::{Store, StoreError};

/// The highest block of the chain that was recorded. It is kept with the ledger, so a database that is
/// bound to another one begins again.
pub(crate) fn highest_block(store: &Store) -> Result<Option<u64>, StoreError> {
    let statement = store
        .statement("-- highest_block\n select l.highest_block from ledger l where l.id = ?")
        .long(1);
    let rows: Vec<HighestBlockRow> = store.pools.read()?.load(&statement)?;
    rows.into_iter().find_map(|row| row.highest_block).map(whole).transpose()
}

/// Records a block, unless a higher one is recorded. Does nothing in a database that is bound to no
/// ledger.
pub(crate) fn record_highest_block(store: &Store, number: u64) -> Result<(), StoreError> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let statement = store
        .statement(
            "-- record_highest_block
             update ledger set highest_block = ?
             where id = 1 and coalesce(highest_block, -1) < ?",
        )
        .long(number)
        .long(number);
    store.pools.write()?.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct HighestBlockRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    highest_block: Option<i64>,
}
