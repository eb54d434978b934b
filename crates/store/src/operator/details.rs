use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Integer, Nullable, Text},
};
use grid_batch_core::{
    BatchDetails, FailedAttempt, HeaderId, Receipt, ServiceId, StoredBatch, Timestamp,
};

use crate::sql::{
    Connection, Store, StoreError,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE, batch_id, time},
};

impl Store {
    /// The batches of this id: one for each service that it was handed in for.
    pub fn find(&self, batch_id: &HeaderId) -> Result<Vec<StoredBatch>, StoreError> {
        let statement = self
            .statement(format!(
                "-- find
                 select {BATCH_COLUMNS} from batches b {WITH_LANE}
                 where b.batch_id = ? order by b.service_id"
            ))
            .bytes(batch_id.as_bytes());
        let rows: Vec<BatchRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(BatchRow::into_batch).collect()
    }

    /// All that is known of a batch.
    pub fn details(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<BatchDetails>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let Some(row) = self.find_one(connection, service_id, batch_id)? else {
                return Ok(None);
            };
            let seq = row.seq;
            let batch = row.into_batch()?;
            Ok(Some(BatchDetails {
                ahead: self.ahead(connection, &batch)?,
                transaction_ids: self.transaction_ids(connection, seq)?,
                failed_attempts: self.failed_attempts(connection, seq)?,
                receipts: self.receipts(connection, seq)?,
                batch,
            }))
        })
    }

    pub(crate) fn find_one(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<BatchRow>, StoreError> {
        let statement = self
            .statement(format!(
                "-- find_one
                 select {BATCH_COLUMNS} from batches b {WITH_LANE}
                 where b.batch_id = ? and b.service_id = ?"
            ))
            .bytes(batch_id.as_bytes())
            .text(service_id.as_str());
        let rows: Vec<BatchRow> = connection.load(&statement)?;
        Ok(rows.into_iter().next())
    }

    /// The bytes of a batch, exactly as they were handed in.
    pub fn serialized_batch(
        &self,
        service_id: &ServiceId,
        batch_id: &HeaderId,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let statement = self
            .statement(
                "-- serialized_batch
                 select p.serialized_batch from batches b
                 join batch_payloads p on p.batch_seq = b.seq
                 where b.batch_id = ? and b.service_id = ?",
            )
            .bytes(batch_id.as_bytes())
            .text(service_id.as_str());
        let rows: Vec<PayloadRow> = self.pools.read()?.load(&statement)?;
        Ok(rows.into_iter().next().map(|row| row.serialized_batch))
    }

    /// The oldest open batches of a service, in order: what a strategy decides from.
    pub fn open_batches(
        &self,
        service_id: &ServiceId,
        limit: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let statement = self
            .statement(format!(
                "-- open_batches
                 select {BATCH_COLUMNS} from batches b {WITH_LANE}
                 where b.service_id = ? and b.ended_at is null and b.created_at >= (
                     select min(h.created_at) from lanes h where h.service_id = ?)
                 order by b.service_id, b.created_at limit ?"
            ))
            .text(service_id.as_str())
            .text(service_id.as_str())
            .long(crate::sql::rows::limit(limit));
        let rows: Vec<BatchRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(BatchRow::into_batch).collect()
    }

    pub(crate) fn ahead(
        &self,
        connection: &mut Connection,
        batch: &StoredBatch,
    ) -> Result<u64, StoreError> {
        if batch.progress.state.is_terminal() {
            return Ok(0);
        }
        let statement = self
            .statement(
                "-- ahead
                 select count(*) as count from batches b
                 where b.service_id = ? and b.ended_at is null and b.created_at < ?
                     and b.created_at >= (
                         select min(h.created_at) from lanes h where h.service_id = ?)",
            )
            .text(batch.service_id.as_str())
            .long(batch.created_at.as_micros())
            .text(batch.service_id.as_str());
        one_count(connection.load(&statement)?)
    }

    fn transaction_ids(
        &self,
        connection: &mut Connection,
        seq: i64,
    ) -> Result<Vec<HeaderId>, StoreError> {
        let statement = self
            .statement(
                "-- transaction_ids
                 select transaction_id from transactions where batch_seq = ? order by position",
            )
            .long(seq);
        let rows: Vec<TransactionRow> = connection.load(&statement)?;
        rows.iter().map(|row| batch_id(&row.transaction_id)).collect()
    }

    fn failed_attempts(
        &self,
        connection: &mut Connection,
        seq: i64,
    ) -> Result<Vec<FailedAttempt>, StoreError> {
        let statement = self
            .statement(
                "-- failed_attempts
                 select attempt, submitted_at, ended_at, outcome, error, next_try_at
                 from submission_attempts where batch_seq = ? order by attempt",
            )
            .long(seq);
        let rows: Vec<AttemptRow> = connection.load(&statement)?;
        rows.into_iter().map(AttemptRow::into_attempt).collect()
    }

    fn receipts(&self, connection: &mut Connection, seq: i64) -> Result<Vec<Receipt>, StoreError> {
        let statement = self
            .statement(
                "-- receipts
                 select transaction_id, error_message, error_data
                 from transaction_receipts where batch_seq = ? order by position",
            )
            .long(seq);
        let rows: Vec<ReceiptRow> = connection.load(&statement)?;
        rows.into_iter().map(ReceiptRow::into_receipt).collect()
    }
}

/// The only row of a `count(*)`.
pub(crate) fn one_count(rows: Vec<CountRow>) -> Result<u64, StoreError> {
    let row = rows.first().ok_or_else(|| StoreError::corrupt("no answer to a count"))?;
    u64::try_from(row.count).map_err(StoreError::corrupt)
}

#[derive(QueryableByName)]
pub(crate) struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct PayloadRow {
    #[diesel(sql_type = Binary)]
    serialized_batch: Vec<u8>,
}

#[derive(QueryableByName)]
struct TransactionRow {
    #[diesel(sql_type = Binary)]
    transaction_id: Vec<u8>,
}

#[derive(QueryableByName)]
struct AttemptRow {
    #[diesel(sql_type = Integer)]
    attempt: i32,
    #[diesel(sql_type = Nullable<BigInt>)]
    submitted_at: Option<i64>,
    #[diesel(sql_type = BigInt)]
    ended_at: i64,
    #[diesel(sql_type = Text)]
    outcome: String,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    next_try_at: Option<i64>,
}

impl AttemptRow {
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

#[derive(QueryableByName)]
struct ReceiptRow {
    #[diesel(sql_type = Nullable<Binary>)]
    transaction_id: Option<Vec<u8>>,
    #[diesel(sql_type = Text)]
    error_message: String,
    #[diesel(sql_type = Binary)]
    error_data: Vec<u8>,
}

impl ReceiptRow {
    fn into_receipt(self) -> Result<Receipt, StoreError> {
        Ok(Receipt {
            transaction_id: self.transaction_id.as_deref().map(batch_id).transpose()?,
            error_message: self.error_message,
            error_data: self.error_data,
        })
    }
}
