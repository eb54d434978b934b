//! What follows the end of a withdrawal that failed: its amount no longer counts in the sum of its pool,
//! and it is the last failure of the pool.

use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use grid_batch_core::{BatchState, Timestamp};
use grid_batch_withdrawals::Amount;

use super::{lane::Lane, payment_sums::subtract};
use crate::sql::{Connection, Rows, Statement, StoreError};

/// Records the failures among the withdrawals whose batches have just ended.
pub(super) fn record_failures(
    connection: &mut Connection,
    ended: &[&Lane],
    now: Timestamp,
) -> Result<(), StoreError> {
    let invalid = ended.iter().filter(|lane| lane.progress.state == BatchState::Invalid);
    let batches: Vec<i64> = invalid.map(|lane| lane.batch_seq).collect();
    if batches.is_empty() {
        return Ok(());
    }
    let failed = failed_withdrawals(connection, &batches)?;
    if failed.is_empty() {
        return Ok(());
    }
    let mut counted = Vec::new();
    for row in &failed {
        if let Some(step) = row.counted_at {
            counted.push(((row.pool.as_str(), step), row.amount()?));
        }
    }
    subtract(connection, &counted)?;
    mark_not_counted(connection, &failed)?;
    write_last_failures(connection, &failed, now)
}

fn failed_withdrawals(
    connection: &mut Connection,
    batches: &[i64],
) -> Result<Vec<FailedRow>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- failed_withdrawals
         select w.seq as withdrawal_seq, w.batch_seq, w.service_id, w.pool, w.amount, w.counted_at
         from {x} join withdrawals w on w.batch_seq = x.batch_seq",
    )
    .rows(Rows::default().long("batch_seq", batches.iter().copied()));
    connection.load(&statement)
}

fn mark_not_counted(connection: &mut Connection, failed: &[FailedRow]) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- mark_not_counted
         update withdrawals as w set counted_at = null
         from {x} where w.seq = x.withdrawal_seq",
    )
    .rows(Rows::default().long("withdrawal_seq", failed.iter().map(|row| row.withdrawal_seq)));
    connection.execute(&statement).map(drop)
}

fn write_last_failures(
    connection: &mut Connection,
    failed: &[FailedRow],
    now: Timestamp,
) -> Result<(), StoreError> {
    // One row for each pool: a statement may change a row only once.
    let last: BTreeMap<(&str, &str), &FailedRow> =
        failed.iter().map(|row| ((row.service_id.as_str(), row.pool.as_str()), row)).collect();
    let statement = Statement::new(
        connection.dialect(),
        "-- write_last_failures
         insert into last_failures (service_id, pool, withdrawal_seq, batch_seq, failed_at)
         select service_id, pool, withdrawal_seq, batch_seq, failed_at
         from {x} where true order by service_id, pool
         on conflict (service_id, pool) do update
         set withdrawal_seq = excluded.withdrawal_seq, batch_seq = excluded.batch_seq,
             failed_at = excluded.failed_at",
    )
    .rows(
        Rows::default()
            .text("service_id", last.keys().map(|(service_id, _)| *service_id))
            .text("pool", last.keys().map(|(_, pool)| *pool))
            .long("withdrawal_seq", last.values().map(|row| row.withdrawal_seq))
            .long("batch_seq", last.values().map(|row| row.batch_seq))
            .long("failed_at", last.values().map(|_| now.as_micros())),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct FailedRow {
    #[diesel(sql_type = BigInt)]
    withdrawal_seq: i64,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = Text)]
    amount: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    counted_at: Option<i64>,
}

impl FailedRow {
    fn amount(&self) -> Result<Amount, StoreError> {
        self.amount.parse().map_err(StoreError::corrupt)
    }
}
