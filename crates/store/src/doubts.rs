use std::collections::{BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary},
};
use grid_batch_core::{BatchState, HeaderId, Timestamp, UnresolvedBatch};

use crate::{
    Store, StoreError,
    connection::Connection,
    lanes::{Key, key_rows},
    rows::{HandedOutRow, STANDING_COLUMNS, StandingRow, batch_id, claimed_by, in_states},
    statement::Rows,
};

impl Store {
    /// How these batches stand, of those that the ledger is still to be asked for.
    pub(crate) fn doubts(
        &self,
        instance: &str,
        batches: &BTreeSet<Key>,
    ) -> Result<Vec<UnresolvedBatch>, StoreError> {
        let claimed = claimed_by("s");
        let states = in_states("s", BatchState::awaits_poller);
        let statement = self
            .statement(format!(
                "-- doubts
                 select s.service_id, s.batch_id, s.epoch, s.batch_seq, {STANDING_COLUMNS}
                 from {{x}} join batch_statuses s on s.service_id = x.service_id
                 where s.batch_id = x.batch_id and {states} and {claimed}"
            ))
            .rows(key_rows(batches))
            .text(instance);
        self.pools.read()?.snapshot(|connection| {
            let rows: Vec<DoubtRow> = connection.load(&statement)?;
            let mut transactions = self.transactions_of(connection, &rows)?;
            rows.into_iter()
                .map(|row| {
                    let transaction_ids = transactions.remove(&row.batch_seq).unwrap_or_default();
                    row.into_doubt(transaction_ids)
                })
                .collect()
        })
    }

    /// The ids of the transactions of each batch, in order.
    fn transactions_of(
        &self,
        connection: &mut Connection,
        batches: &[DoubtRow],
    ) -> Result<HashMap<i64, Vec<HeaderId>>, StoreError> {
        let statement = self
            .statement(
                "-- transactions_of
                 select t.batch_seq, t.transaction_id
                 from {x} join transactions t on t.batch_seq = x.batch_seq
                 order by t.batch_seq, t.position",
            )
            .rows(Rows::default().long("batch_seq", batches.iter().map(|row| row.batch_seq)));
        let rows: Vec<TransactionRow> = connection.load(&statement)?;
        let mut transactions: HashMap<i64, Vec<HeaderId>> = HashMap::new();
        for row in rows {
            transactions.entry(row.batch_seq).or_default().push(batch_id(&row.transaction_id)?);
        }
        Ok(transactions)
    }
}

#[derive(QueryableByName)]
struct DoubtRow {
    #[diesel(embed)]
    handed_out: HandedOutRow,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(embed)]
    standing: StandingRow,
}

impl DoubtRow {
    fn into_doubt(self, transaction_ids: Vec<HeaderId>) -> Result<UnresolvedBatch, StoreError> {
        let (service_id, batch_id, attempt_id) = self.handed_out.read()?;
        let time = |time: Option<i64>| {
            let never = || StoreError::corrupt("a batch at the ledger that was never submitted");
            time.map(Timestamp::from_micros).ok_or_else(never)
        };
        Ok(UnresolvedBatch {
            service_id,
            batch_id,
            transaction_ids,
            attempt_id,
            state: self.standing.progress()?.state,
            submitted_at: time(self.standing.submitted_at)?,
            since: time(self.standing.since)?,
            held: self.standing.held.into_held().is_some(),
        })
    }
}

#[derive(QueryableByName)]
struct TransactionRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Binary)]
    transaction_id: Vec<u8>,
}
