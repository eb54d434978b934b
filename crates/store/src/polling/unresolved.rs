use std::collections::{BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_core::{BatchState, ItemId, Timestamp, UnresolvedBatch};

use crate::{
    batch::{BatchKey, key_rows},
    sql::{
        Connection, Dialect, Rows, Statement, Store, StoreError,
        rows::{
            AttemptRow, PROGRESS_COLUMNS, ProgressRow, batch_id, claimed_by, in_states,
            read_deadline, same_transaction,
        },
    },
};

/// Those of these batches that are unresolved, of claimed services.
pub(super) fn unresolved_batches(
    store: &Store,
    instance: &str,
    batches: &BTreeSet<BatchKey>,
) -> Result<Vec<UnresolvedBatch>, StoreError> {
    let statement = unresolved_batches_statement(store.dialect(), instance, batches);
    store.pools.read()?.snapshot(|connection| {
        let rows: Vec<UnresolvedRow> = connection.load(&statement)?;
        let mut transactions = transaction_ids(connection, &rows)?;
        rows.into_iter()
            .map(|row| {
                let transactions = transactions.remove(&row.batch_seq).unwrap_or_default();
                row.into_unresolved(transactions)
            })
            .collect()
    })
}

fn unresolved_batches_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    batches: &'a BTreeSet<BatchKey>,
) -> Statement<'a> {
    let (states, claimed) = (in_states("s", BatchState::awaits_poller), claimed_by("s"));
    Statement::new(
        dialect,
        format!(
            "-- unresolved_batches
             select s.service_id, s.batch_id, s.epoch, s.batch_seq, s.not_accepted,
                 {PROGRESS_COLUMNS},
                 (select p.deadline from batch_payloads p where p.batch_seq = s.batch_seq) as deadline
             from {{x}} join lanes s on s.service_id = x.service_id
             where s.batch_id = x.batch_id and {states} and {claimed}"
        ),
    )
    .rows(key_rows(batches))
    .text(/* claimant */ instance)
}

/// The ids of the transactions of a batch.
#[derive(Default)]
struct TransactionIds {
    /// All, in order.
    all: Vec<ItemId>,
    /// Those that another batch of the service has, too.
    shared: Vec<ItemId>,
}

/// The ids of the transactions of each batch.
fn transaction_ids(
    connection: &mut Connection,
    batches: &[UnresolvedRow],
) -> Result<HashMap<i64, TransactionIds>, StoreError> {
    let same = same_transaction("own");
    // This counts rows, because a planner turns `exists` into a join that may read all batches.
    let statement = Statement::new(
        connection.dialect(),
        format!(
            "-- unresolved_transaction_ids
             select x.batch_seq, own.transaction_id,
                 (select count(*) from transactions t join batches b on b.seq = t.batch_seq
                  where {same} and b.service_id = x.service_id and b.seq <> x.batch_seq) as others
             from {{x}} join transactions own on own.batch_seq = x.batch_seq
             order by x.batch_seq, own.position"
        ),
    )
    .rows(
        Rows::default()
            .long("batch_seq", batches.iter().map(|row| row.batch_seq))
            .text("service_id", batches.iter().map(|row| row.attempt.service_id.as_str())),
    );
    let rows: Vec<TransactionRow> = connection.load(&statement)?;
    let mut transactions: HashMap<i64, TransactionIds> = HashMap::new();
    for row in rows {
        let id = batch_id(&row.transaction_id)?;
        let ids = transactions.entry(row.batch_seq).or_default();
        ids.all.push(id);
        if row.others > 0 {
            ids.shared.push(id);
        }
    }
    Ok(transactions)
}

#[derive(QueryableByName)]
struct UnresolvedRow {
    #[diesel(embed)]
    attempt: AttemptRow,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Integer)]
    not_accepted: i32,
    #[diesel(embed)]
    progress: ProgressRow,
    #[diesel(sql_type = Nullable<Text>)]
    deadline: Option<String>,
}

impl UnresolvedRow {
    fn into_unresolved(self, transactions: TransactionIds) -> Result<UnresolvedBatch, StoreError> {
        let (service_id, batch_id, attempt_id) = self.attempt.read()?;
        let time = |time: Option<i64>| {
            let missing = || StoreError::corrupt("an unresolved batch that was never submitted");
            time.map(Timestamp::from_micros).ok_or_else(missing)
        };
        let progress = self.progress.progress()?;
        let held = self.progress.held.into_held();
        Ok(UnresolvedBatch {
            service_id,
            batch_id,
            transaction_ids: transactions.all,
            shared_transaction_ids: transactions.shared,
            attempt_id,
            not_accepted: u32::try_from(self.not_accepted).map_err(StoreError::corrupt)?,
            state: progress.state,
            submitted_at: time(self.progress.submitted_at)?,
            since: time(self.progress.since)?,
            held: held.is_some(),
            held_until_decision: held.is_some_and(|hold| hold.until_decision),
            last_error: self.progress.last_error,
            earlier_may_arrive: progress.earlier_may_arrive,
            invalid_reported: progress.invalid_reported,
            deadline: read_deadline(self.deadline)?,
        })
    }
}

#[derive(QueryableByName)]
struct TransactionRow {
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Binary)]
    transaction_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    others: i64,
}
