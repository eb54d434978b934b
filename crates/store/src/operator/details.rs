use diesel::{dsl::sql, prelude::*, sql_types::Binary};
use grid_batch_core::batches::{BatchLabel, Deadline, Receipt, StoredBatch};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::{
    BatchDetails, BatchPage, BatchQueryStore, BatchSelection, CommitAfterInvalid, FailedAttempt,
    InstanceLease, ItemIdPrefix, ListCursor, OwnedService, PageOrder, ServiceOverview,
};
use grid_batch_core::queue::Ahead;
use grid_batch_core::{BatchResult, ItemId, ServiceId, Timestamp};

use super::{
    ahead::{self, all_ahead, load_head_time},
    claims,
    holds::{load_waiting_hold, waiting_hold, with_waiting_hold},
    list::oldest_waiting,
    page::batch_page,
    services,
};
use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, batches_with_lane, into_batches},
    rows::{batch_id as header_id, label, limit, read_deadline, time},
    schema::{
        batch_payloads, batches, commits_after_invalid, submission_attempts, transaction_receipts,
        transactions, waiting_holds,
    },
};

impl BatchQueryStore for Store {
    fn find(&self, batch_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        let hold = || waiting_holds::table.filter(waiting_holds::batch_seq.eq(batches::seq));
        let query = batches_with_lane()
            .filter(batches::batch_id.eq(batch_id.as_bytes()))
            .order_by(batches::service_id)
            .select((
                BatchRecord::as_select(),
                hold().select(waiting_holds::held_at).single_value(),
                hold().select(waiting_holds::held_reason).single_value(),
            ));
        let rows: Vec<(BatchRecord, Option<i64>, Option<String>)> =
            self.pools.read()?.load_query("find", query)?;
        let with_hold = |(record, held_at, held_reason): (_, Option<i64>, Option<String>)| {
            let hold = held_at.zip(held_reason).map(|(at, reason)| waiting_hold(at, reason));
            with_waiting_hold(record, hold)
        };
        Ok(rows.into_iter().map(with_hold).collect::<Result<_, _>>()?)
    }

    fn find_by_prefix(
        &self,
        prefix: &ItemIdPrefix,
        service_id: Option<&ServiceId>,
        count: usize,
    ) -> BatchResult<Vec<StoredBatch>> {
        let mut found = Vec::new();
        // There is one query for each range, because with `or` SQLite would scan.
        for (first, last) in prefix.ranges() {
            let mut query = batches_with_lane()
                .filter(batches::batch_id.ge(first))
                .filter(batches::batch_id.le(last))
                .order_by((batches::batch_id, batches::service_id))
                .limit(limit(count))
                .select(BatchRecord::as_select())
                .into_boxed();
            if let Some(service_id) = service_id {
                query = query.filter(batches::service_id.eq(service_id.as_str()));
            }
            found.extend(into_batches(self.pools.read()?.load_query("find_by_prefix", query)?)?);
        }
        found.retain(|batch| prefix.begins(&batch.batch_id));
        found.truncate(count);
        Ok(found)
    }

    fn find_by_transaction(&self, transaction_id: &ItemId) -> BatchResult<Vec<StoredBatch>> {
        let id = transaction_id.as_bytes();
        let with_transaction = transactions::table
            .filter(sql::<Binary>("substr(transaction_id, 1, 7)").eq(&id[..id.len().min(7)]))
            .filter(transactions::transaction_id.eq(id))
            .select(transactions::batch_seq);
        let query = batches_with_lane()
            .filter(batches::seq.eq_any(with_transaction))
            .order_by((batches::service_id, batches::seq))
            .select(BatchRecord::as_select());
        Ok(into_batches(self.pools.read()?.load_query("find_by_transaction", query)?)?)
    }

    fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<BatchDetails>> {
        let details = self.pools.read()?.snapshot(|connection| {
            let Some(record) = find_one(connection, service_id, batch_id)? else {
                return Ok(None);
            };
            let seq = record.seq();
            let waits_behind_another = record.waits_behind_another();
            let hold =
                if waits_behind_another { load_waiting_hold(connection, seq)? } else { None };
            let batch = with_waiting_hold(record, hold)?;
            Ok(Some(BatchDetails {
                label: load_label(connection, seq)?,
                of_withdrawal: self.scheduler.hooks().is_of_withdrawal(connection, seq)?,
                deadline: load_deadline(connection, seq)?,
                ahead: all_ahead(self, connection, &batch)?,
                transaction_ids: load_transaction_ids(connection, seq)?,
                failed_attempts: load_failed_attempts(connection, seq)?,
                receipts: load_receipts(connection, seq)?,
                commit_after_invalid: load_commit_after_invalid(connection, seq)?,
                batch,
            }))
        })?;
        Ok(details)
    }

    fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<Option<Vec<u8>>> {
        let query = batch_payloads::table
            .inner_join(batches::table)
            .filter(batches::batch_id.eq(batch_id.as_bytes()))
            .filter(batches::service_id.eq(service_id.as_str()))
            .select(batch_payloads::serialized_batch);
        let payloads = self.pools.read()?.load_query("serialized_batch", query)?;
        Ok(payloads.into_iter().next())
    }

    fn ahead(
        &self,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> BatchResult<Vec<Option<Ahead>>> {
        Ok(ahead::ahead(self, service_id, created_at)?)
    }

    /// However many batches are stored, a limited number is examined for each page.
    fn batch_page(
        &self,
        selection: &BatchSelection,
        order: PageOrder,
        after: Option<ListCursor>,
        limit: usize,
    ) -> BatchResult<BatchPage> {
        Ok(batch_page(self, selection, order, after, limit)?)
    }

    fn services(
        &self,
        with_idle: bool,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceOverview>> {
        Ok(services::services(self, with_idle, after, limit)?)
    }

    fn service(&self, service_id: &ServiceId) -> BatchResult<Option<ServiceOverview>> {
        Ok(services::service(self, service_id)?)
    }

    fn instances(&self) -> BatchResult<Vec<InstanceLease>> {
        Ok(claims::instances(self)?)
    }

    fn claims(
        &self,
        instance: Option<&InstanceId>,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<OwnedService>> {
        Ok(claims::claims(self, instance, after, limit)?)
    }
}

impl Store {
    /// The oldest open batches of a service, in order: the input of a strategy.
    pub fn open_batches(
        &self,
        service_id: &ServiceId,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let head = load_head_time(connection, service_id)?;
            let waiting = oldest_waiting(connection, service_id)?;
            let Some(oldest) = head.into_iter().chain(waiting).min() else { return Ok(Vec::new()) };
            let query = batches_with_lane()
                .filter(batches::service_id.eq(service_id.as_str()))
                .filter(batches::ended_at.is_null())
                .filter(batches::created_at.ge(oldest.as_micros()))
                .order_by((batches::service_id, batches::created_at))
                .limit(limit(count))
                .select(BatchRecord::as_select());
            into_batches(connection.load_query("open_batches", query)?)
        })
    }
}

pub(crate) fn find_one(
    connection: &mut Connection,
    service_id: &ServiceId,
    batch_id: &ItemId,
) -> Result<Option<BatchRecord>, StoreError> {
    let query = batches_with_lane()
        .filter(batches::batch_id.eq(batch_id.as_bytes()))
        .filter(batches::service_id.eq(service_id.as_str()))
        .select(BatchRecord::as_select());
    Ok(connection.load_query("find_one", query)?.into_iter().next())
}

fn load_deadline(connection: &mut Connection, seq: i64) -> Result<Option<Deadline>, StoreError> {
    let query = batch_payloads::table
        .filter(batch_payloads::batch_seq.eq(seq))
        .select(batch_payloads::deadline);
    let found = connection.load_query::<_, Option<String>>("load_deadline", query)?;
    read_deadline(found.into_iter().next().flatten())
}

fn load_label(connection: &mut Connection, seq: i64) -> Result<Option<BatchLabel>, StoreError> {
    let query = batches::table.filter(batches::seq.eq(seq)).select(batches::label);
    let found = connection.load_query::<_, Option<String>>("load_label", query)?;
    label(found.into_iter().next().flatten())
}

fn load_transaction_ids(connection: &mut Connection, seq: i64) -> Result<Vec<ItemId>, StoreError> {
    let query = transactions::table
        .filter(transactions::batch_seq.eq(seq))
        .order_by(transactions::position)
        .select(transactions::transaction_id);
    let ids: Vec<Vec<u8>> = connection.load_query("transaction_ids", query)?;
    ids.iter().map(|id| header_id(id)).collect()
}

fn load_failed_attempts(
    connection: &mut Connection,
    seq: i64,
) -> Result<Vec<FailedAttempt>, StoreError> {
    let query = submission_attempts::table
        .filter(submission_attempts::batch_seq.eq(seq))
        .order_by(submission_attempts::attempt)
        .select(AttemptRecord::as_select());
    let records = connection.load_query("failed_attempts", query)?;
    records.into_iter().map(AttemptRecord::into_attempt).collect()
}

fn load_receipts(connection: &mut Connection, seq: i64) -> Result<Vec<Receipt>, StoreError> {
    let query = transaction_receipts::table
        .filter(transaction_receipts::batch_seq.eq(seq))
        .order_by(transaction_receipts::position)
        .select(ReceiptRecord::as_select());
    let records = connection.load_query("receipts", query)?;
    records.into_iter().map(ReceiptRecord::into_receipt).collect()
}

fn load_commit_after_invalid(
    connection: &mut Connection,
    seq: i64,
) -> Result<Option<CommitAfterInvalid>, StoreError> {
    let query = commits_after_invalid::table
        .filter(commits_after_invalid::batch_seq.eq(seq))
        .select((commits_after_invalid::reported_at, commits_after_invalid::source));
    let reports: Vec<(i64, String)> = connection.load_query("commit_after_invalid", query)?;
    Ok(reports.into_iter().next().map(|(reported_at, source)| CommitAfterInvalid {
        reported_at: Timestamp::from_micros(reported_at),
        source,
    }))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = submission_attempts)]
struct AttemptRecord {
    attempt: i32,
    submitted_at: Option<i64>,
    ended_at: i64,
    outcome: String,
    error: Option<String>,
    next_try_at: Option<i64>,
}

impl AttemptRecord {
    fn into_attempt(self) -> Result<FailedAttempt, StoreError> {
        Ok(FailedAttempt {
            attempt: u32::try_from(self.attempt).map_err(StoreError::corrupt)?,
            submitted_at: time(self.submitted_at),
            ended_at: Timestamp::from_micros(self.ended_at),
            outcome: self.outcome,
            error: self.error,
            next_try_at: time(self.next_try_at),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = transaction_receipts)]
struct ReceiptRecord {
    transaction_id: Option<Vec<u8>>,
    error_message: String,
    error_data: Vec<u8>,
}

impl ReceiptRecord {
    fn into_receipt(self) -> Result<Receipt, StoreError> {
        Ok(Receipt {
            transaction_id: self.transaction_id.as_deref().map(header_id).transpose()?,
            error_message: self.error_message,
            error_data: self.error_data,
        })
    }
}
