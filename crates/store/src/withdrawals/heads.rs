use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    prelude::*,
    sql_types::{BigInt, Text},
};
use grid_batch_withdrawals::WithdrawalState;

use super::signed_ahead::load_signed_ahead;
use crate::sql::{
    Connection, Statement, StoreError,
    rows::progress,
    schema::{batches, lanes, waiting_holds},
};

/// A batch that is next or under way in its service, held, or signed ahead, or whose withdrawal waits for a
/// decision. All other open batches are scheduled.
pub(super) struct Head {
    pub(super) service_id: String,
    pub(super) batch_seq: i64,
    pub(super) state: WithdrawalState,
}

/// All heads, and all batches that are held or signed ahead: as many as there are services with open
/// batches, holds, and transactions in flight.
pub(super) fn load_heads(connection: &mut Connection) -> Result<Vec<Head>, StoreError> {
    let in_lanes = lanes::table.filter(lanes::busy).select(LaneRow::as_select());
    let in_lanes: Vec<LaneRow> = connection.load_query("heads", in_lanes)?;
    // The condition leads PostgreSQL to the index. With an inner join SQLite would read all batches.
    let held = waiting_holds::table
        .left_join(batches::table)
        .filter(waiting_holds::batch_seq.gt(0))
        .select((batches::service_id.nullable().assume_not_null(), waiting_holds::batch_seq));
    let held: Vec<(String, i64)> = connection.load_query("held_withdrawals", held)?;
    let mut heads = BTreeMap::new();
    for (service_id, batch_seq, has_outcome) in load_signed_ahead(connection)? {
        let state = WithdrawalState::of_signed_ahead(has_outcome);
        heads.insert(batch_seq, Head { service_id, batch_seq, state });
    }
    let without_event = load_without_event(connection)?;
    for (service_id, batch_seq) in held.into_iter().chain(without_event) {
        let state = WithdrawalState::Held;
        heads.insert(batch_seq, Head { service_id, batch_seq, state });
    }
    for lane in in_lanes {
        let Some(head) = lane.into_head()? else { continue };
        // One that was signed ahead is pending before it is submitted, too.
        if head.state != WithdrawalState::Scheduled || !heads.contains_key(&head.batch_seq) {
            heads.insert(head.batch_seq, head);
        }
    }
    Ok(heads.into_values().collect())
}

/// The withdrawals of which an operator has to decide whether they were made.
fn load_without_event(connection: &mut Connection) -> Result<Vec<(String, i64)>, StoreError> {
    // Every service id is greater than the empty text.
    let statement = Statement::new(
        connection.dialect(),
        "-- withdrawals_without_event
         select n.service_id, w.batch_seq
         from account_nonces n join withdrawals w on w.seq = n.withdrawal_seq
         join batches b on b.seq = w.batch_seq
         where n.service_id > ? and n.pool_withdrawal_id = '' and w.list_state = 'OPEN'
             and b.dlt_status is not null
         order by n.service_id, n.nonce",
    )
    .text("");
    let rows: Vec<WithoutEventRow> = connection.load(&statement)?;
    Ok(rows.into_iter().map(|row| (row.service_id, row.batch_seq)).collect())
}

#[derive(QueryableByName)]
struct WithoutEventRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = lanes)]
struct LaneRow {
    service_id: String,
    batch_seq: Option<i64>,
    submitted: bool,
    dlt_status: Option<String>,
    attempts: i32,
    held_at: Option<i64>,
}

impl LaneRow {
    fn into_head(self) -> Result<Option<Head>, StoreError> {
        let Some(batch_seq) = self.batch_seq else { return Ok(None) };
        let progress = progress(self.submitted, self.dlt_status.as_deref(), self.attempts)?;
        let state = match self.held_at {
            Some(_) => WithdrawalState::Held,
            None => progress.state.into(),
        };
        Ok(Some(Head { service_id: self.service_id, batch_seq, state }))
    }
}
