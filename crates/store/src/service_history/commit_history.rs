use std::sync::atomic::Ordering::Relaxed;

use diesel::prelude::*;
use grid_batch_core::batches::NewBatch;
use grid_batch_core::ledger::{CommitHistory, CommittedBefore, HistoryFacts};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::past_transactions::add_applied;
use crate::sql::{
    Connection, Rows, Statement, Store, StoreError, result_row,
    rows::{batch_id as header_id, service_rows},
    schema::{batches, lanes, service_histories},
};

impl CommitHistory for Store {
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<CommittedBefore> {
        let last_committed = lanes::last_committed_seq.eq(batches::seq.nullable());
        let query = lanes::table
            .left_join(batches::table.on(last_committed))
            .filter(lanes::service_id.eq(service_id.as_str()))
            .order_by((lanes::service_id, lanes::lane))
            .select((
                lanes::batch_id,
                lanes::submitted_at,
                batches::batch_id.nullable(),
                batches::ended_at.nullable(),
            ));
        let rows: Vec<CommittedRow> = self.pools.read()?.load_query("committed_before", query)?;
        let is_own = |row: &&CommittedRow| row.0.as_deref() == Some(batch_id.as_bytes());
        let taken_at = rows.iter().find(is_own).and_then(|row| row.1);
        let mut history = CommittedBefore::default();
        for (_, _, committed, ended_at) in &rows {
            let Some(committed) = committed else { continue };
            let ended_later = taken_at.is_some_and(|taken| ended_at.is_some_and(|end| end > taken));
            let found = if ended_later { &mut history.since } else { &mut history.before };
            found.push(header_id(committed)?);
        }
        Ok(history)
    }

    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool> {
        let query = lanes::table
            .filter(lanes::service_id.eq(service_id.as_str()))
            .filter(lanes::last_committed_seq.is_not_null())
            .select(lanes::lane)
            .limit(1);
        let rows: Vec<i32> = self.pools.read()?.load_query("has_committed", query)?;
        Ok(!rows.is_empty())
    }

    fn refuse_past_transactions(&self) {
        self.applies_again.store(true, Relaxed);
    }

    fn read_history(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<HistoryFacts> {
        let statement = read_history_statement(service_id, batch_id);
        let rows: Vec<FactsRow> = self.pools.read()?.load(&statement)?;
        let Some(row) = rows.into_iter().next() else { return Ok(HistoryFacts::default()) };
        Ok(HistoryFacts {
            is_known: row.is_known,
            anchor: row.anchor.as_deref().map(header_id).transpose()?,
            is_new: row.declared > 0 || row.tried > 0,
        })
    }

    fn is_history_known(&self, service_id: &ServiceId) -> BatchResult<Option<bool>> {
        let query =
            service_histories::table.find(service_id.as_str()).select(service_histories::is_known);
        let rows: Vec<Option<bool>> = self.pools.read()?.load_query("is_history_known", query)?;
        Ok(rows.into_iter().flatten().next())
    }

    fn set_history_known(&self, services: &[ServiceId], is_known: bool) -> BatchResult<()> {
        let sql = format!(
            "-- set_history_known
             insert into service_histories (service_id, is_known)
             select service_id, {is_known} from {{x}} where true
             on conflict (service_id) do update set is_known = {is_known}"
        );
        let rows = service_rows(services).in_chunks();
        self.pools.write()?.write_transaction(|connection| connection.execute_rows(sql, rows))?;
        Ok(())
    }

    fn add_applied(&self, service_id: &ServiceId, transactions: &[ItemId]) -> BatchResult<()> {
        Ok(add_applied(self, service_id, transactions)?)
    }

    fn generation(&self) -> i64 {
        self.last_seen.get().restored_at.unwrap_or_default()
    }
}

/// `tried`: a node may have accepted an earlier attempt, so the batch was proved to be new before that one. Attempts in
/// `not_accepted` were certainly not accepted.
///
/// If the last committed batch was not sent, retention may have removed it.
fn read_history_statement<'a>(service_id: &'a ServiceId, batch_id: &'a ItemId) -> Statement<'a> {
    Statement::new(
        "-- read_history
         select (select h.is_known from service_histories h where h.service_id = ?) as is_known,
             (select a.batch_id from lanes l
              left join batches last on last.seq = l.last_committed_seq
              join batches a on a.service_id = l.service_id
                  and a.created_at <= coalesce(last.created_at, 9223372036854775807)
              where l.service_id = ? and l.lane = 0 and l.last_committed_seq is not null
                  and a.dlt_status = 'COMMITTED' and a.attempts > 0
              order by a.created_at desc limit 1 offset 1) as anchor,
             (select count(*) from batches b join declared_new_batches d on d.batch_seq = b.seq
              where b.batch_id = ? and b.service_id = ?) as declared,
             (select count(*) from lanes l
              where l.service_id = ? and l.batch_id = ? and l.attempts - l.not_accepted > 1) as tried",
    )
    .text(service_id.as_str())
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes())
    .text(service_id.as_str())
    .text(service_id.as_str())
    .bytes(batch_id.as_bytes())
}

/// Forgets the histories of all services, because the database went back. Must be called in a transaction.
pub(crate) fn forget_histories(connection: &mut Connection) -> Result<(), StoreError> {
    let sql = "-- forget_histories
         update service_histories set is_known = null where is_known";
    connection.execute(&Statement::new(sql)).map(drop)
}

/// Records which of these batches their clients declare as new.
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
    connection.execute_rows(
        "-- declare_new
         insert into declared_new_batches (batch_seq) select batch_seq from {x} where true
         on conflict (batch_seq) do nothing",
        Rows::default().long("batch_seq", seqs).in_chunks(),
    )
}

/// The batch in a lane and when it was taken, and the last committed batch of the lane and when it ended.
type CommittedRow = (Option<Vec<u8>>, Option<i64>, Option<Vec<u8>>, Option<i64>);

result_row! {
    struct FactsRow {
        is_known: Option<bool>,
        anchor: Option<Vec<u8>>,
        declared: i64,
        tried: i64,
    }
}
