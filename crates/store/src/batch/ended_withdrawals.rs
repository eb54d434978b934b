//! What the table of withdrawals says about how their batches ended. Lists by state read it by index,
//! which `batches` must not have on what changes when a batch ends.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool},
};

use super::lane::Lane;
use crate::sql::{Connection, Rows, Statement, StoreError};

/// A batch that was written for the second and last time.
#[derive(QueryableByName)]
pub(super) struct EndedRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Bool)]
    is_of_withdrawal: bool,
}

/// Those of the lanes whose batches tried withdrawals.
pub(super) fn of_withdrawals<'a>(lanes: &[&'a Lane], ended: &[EndedRow]) -> Vec<&'a Lane> {
    let seqs: BTreeSet<i64> =
        ended.iter().filter(|row| row.is_of_withdrawal).map(|row| row.seq).collect();
    lanes.iter().copied().filter(|lane| seqs.contains(&lane.batch_seq)).collect()
}

/// Stores how withdrawals ended: as their batches did, unless the chain has shown that they were made. Withdrawals
/// whose pool did not emit its event are left to an operator.
pub(super) fn end_withdrawals(
    connection: &mut Connection,
    lanes: &[&Lane],
) -> Result<(), StoreError> {
    let ended: Vec<(i64, &str)> =
        lanes.iter().filter_map(|lane| Some((lane.batch_seq, lane.dlt_status()?))).collect();
    if ended.is_empty() {
        return Ok(());
    }
    let statement = Statement::new(
        connection.dialect(),
        "-- end_withdrawals
         update withdrawals as w
         set list_state = coalesce(
             (select case n.pool_withdrawal_id when '' then 'OPEN' else 'COMMITTED' end
              from account_nonces n where n.withdrawal_seq = w.seq and n.outcome = 'WITHDRAWN'),
             x.dlt_status)
         from {x} where w.batch_seq = x.batch_seq",
    )
    .rows(
        Rows::default()
            .long("batch_seq", ended.iter().map(|(seq, _)| *seq))
            .text("dlt_status", ended.iter().map(|(_, status)| *status)),
    );
    connection.execute(&statement).map(drop)
}
