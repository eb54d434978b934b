//! The statements about the sums of pools.

use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_withdrawals::Amount;

use crate::sql::{Connection, Rows, Statement, StoreError};

/// A pool and the begin of a step.
pub(super) type SumKey<'a> = (&'a str, i64);

/// The same, as it is read.
pub(super) type OwnedSumKey = (String, i64);

pub(super) fn lock_sums(
    connection: &mut Connection,
    keys: &[SumKey<'_>],
) -> Result<BTreeMap<OwnedSumKey, Amount>, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of p");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_payment_sums
             select p.pool, p.started_at, p.amount
             from {{x}} join payment_sums p on p.pool = x.pool and p.started_at = x.started_at
             order by p.pool, p.started_at {lock}"
        ),
    )
    .rows(key_rows(keys.iter().copied()));
    let rows: Vec<SumRow> = connection.load(&statement)?;
    rows.into_iter().map(|row| Ok(((row.pool.clone(), row.started_at), row.amount()?))).collect()
}

pub(super) fn sums_since(
    connection: &mut Connection,
    pools: &[&str],
    since: i64,
    before: i64,
) -> Result<Vec<(String, Amount)>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- payment_sums_since
         select p.pool, p.started_at, p.amount
         from {x} join payment_sums p on p.pool = x.pool
             and p.started_at >= x.since and p.started_at < x.before",
    )
    .rows(
        Rows::default()
            .text("pool", pools.iter().copied())
            .long("since", pools.iter().map(|_| since))
            .long("before", pools.iter().map(|_| before)),
    );
    let rows: Vec<SumRow> = connection.load(&statement)?;
    rows.into_iter().map(|row| Ok((row.pool.clone(), row.amount()?))).collect()
}

pub(super) fn update_sums(
    connection: &mut Connection,
    sums: &BTreeMap<OwnedSumKey, Amount>,
) -> Result<(), StoreError> {
    let amounts: Vec<String> = sums.values().map(ToString::to_string).collect();
    let statement = Statement::new(
        connection.dialect(),
        "-- update_payment_sums
         update payment_sums as p set amount = x.amount
         from {x} where p.pool = x.pool and p.started_at = x.started_at",
    )
    .rows(
        key_rows(sums.keys().map(|(pool, step)| (pool.as_str(), *step)))
            .text("amount", amounts.iter().map(String::as_str)),
    );
    connection.execute(&statement).map(drop)
}

/// Stores the sums of a step that has just begun, unless another transaction has, and removes those of
/// the same pools that no longer count.
pub(super) fn begin_step(
    connection: &mut Connection,
    keys: &[SumKey<'_>],
    expired_before: i64,
) -> Result<(), StoreError> {
    let dialect = connection.dialect();
    let begin = Statement::new(
        dialect,
        "-- begin_payment_sums
         insert into payment_sums (pool, started_at, amount)
         select pool, started_at, '0' from {x} where true order by pool
         on conflict do nothing",
    )
    .rows(key_rows(keys.iter().copied()));
    connection.execute(&begin)?;
    let remove = Statement::new(
        dialect,
        "-- remove_payment_sums
         delete from payment_sums
         where pool in (select x.pool from {x}) and started_at < ?",
    )
    .long(expired_before)
    .rows(Rows::default().text("pool", keys.iter().map(|(pool, _)| *pool)));
    connection.execute(&remove).map(drop)
}

fn key_rows<'a>(keys: impl Iterator<Item = SumKey<'a>> + Clone) -> Rows<'a> {
    Rows::default()
        .text("pool", keys.clone().map(|(pool, _)| pool))
        .long("started_at", keys.map(|(_, step)| step))
}

#[derive(QueryableByName)]
struct SumRow {
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = BigInt)]
    started_at: i64,
    #[diesel(sql_type = Text)]
    amount: String,
}

impl SumRow {
    fn amount(&self) -> Result<Amount, StoreError> {
        self.amount.parse().map_err(StoreError::corrupt)
    }
}
