use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{BatchFilter, BatchState, PageCursor, QueueDepth, ServiceId, StoredBatch};

use super::details::one_count;
use crate::sql::{
    Statement, Store, StoreError,
    rows::{BATCH_COLUMNS, BatchRow, WITH_LANE, in_states, limit, service_id},
};

impl Store {
    /// One page of batches: service by service, in each the oldest first.
    ///
    /// A page costs what it shows, and what it passes over where a filter is set.
    pub fn list(
        &self,
        filter: &BatchFilter,
        start: Option<&PageCursor>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        let from = source(filter.state);
        let mut sql = format!("-- list\n select {BATCH_COLUMNS} {from}");
        if filter.service_id.is_some() {
            sql.push_str(" and b.service_id = ?");
        }
        if start.is_some() {
            sql.push_str(" and (b.service_id, b.created_at) > (?, ?)");
        }
        sql.push_str(" order by b.service_id, b.created_at limit ?");
        let mut statement = self.of_service(sql, filter);
        if let Some(start) = start {
            statement =
                statement.text(start.service_id.as_str()).long(start.created_at.as_micros());
        }
        let rows: Vec<BatchRow> = self.pools.read()?.load(&statement.long(limit(count)))?;
        rows.into_iter().map(BatchRow::into_batch).collect()
    }

    /// How many batches a list without end would show.
    pub fn count(&self, filter: &BatchFilter) -> Result<u64, StoreError> {
        let from = source(filter.state);
        let mut sql = format!("-- count\n select count(*) as count {from}");
        if filter.service_id.is_some() {
            sql.push_str(" and b.service_id = ?");
        }
        one_count(self.pools.read()?.load(&self.of_service(sql, filter))?)
    }

    fn of_service<'a>(&self, sql: String, filter: &'a BatchFilter) -> Statement<'a> {
        let statement = self.statement(sql);
        match &filter.service_id {
            Some(service) => statement.text(service.as_str()),
            None => statement,
        }
    }

    /// How many open batches a service has. Costs the same however many they are.
    pub fn depth(&self, service: &ServiceId) -> Result<u64, StoreError> {
        let statement = self
            .statement(
                "-- depth
                 select cast(coalesce(sum(v.added - (
                     select sum(s.ended) from lanes s where s.service_id = v.service_id
                 )), 0) as bigint) as count from services v where v.service_id = ?",
            )
            .text(service.as_str());
        one_count(self.pools.read()?.load(&statement)?)
    }

    /// Up to `limit` services that have open batches, and how many, from the one after `after`.
    pub fn depths(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<QueueDepth>, StoreError> {
        let statement = self
            .statement(
                "-- depths
                 select v.service_id, cast(v.added - sum(s.ended) as bigint) as open
                 from services v join lanes s on s.service_id = v.service_id
                 where v.service_id > ?
                 group by v.service_id, v.added having v.added > sum(s.ended)
                 order by v.service_id limit ?",
            )
            .text(after.map_or("", ServiceId::as_str))
            .long(limit(count));
        let rows: Vec<DepthRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(DepthRow::into_depth).collect()
    }
}

/// Where batches of a state are found without passing over those of the others; ends with a
/// condition, so that others can follow.
fn source(state: Option<BatchState>) -> String {
    match state {
        None => format!("from batches b {WITH_LANE} where true"),
        Some(BatchState::Committed) => {
            format!("from batches b {WITH_LANE} where b.dlt_status = 'COMMITTED'")
        }
        Some(BatchState::Invalid) => format!(
            "from (select distinct batch_seq from transaction_receipts) r
             join batches b on b.seq = r.batch_seq {WITH_LANE} where b.dlt_status = 'INVALID'"
        ),
        Some(BatchState::New) => {
            let new = in_states("s", |state| state == BatchState::New);
            format!(
                "from (
                     select service_id, min(created_at) as created_at from lanes
                     where busy group by service_id
                 ) h
                 join batches b on b.service_id = h.service_id and b.created_at >= h.created_at
                 {WITH_LANE}
                 where b.ended_at is null and (s.batch_seq is null or {new})"
            )
        }
        Some(under_way) => {
            let state = in_states("s", |state| state == under_way);
            format!(
                "from lanes s join batches b on b.seq = s.batch_seq
                 where s.busy and {state}"
            )
        }
    }
}

#[derive(QueryableByName)]
struct DepthRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    open: i64,
}

impl DepthRow {
    fn into_depth(self) -> Result<QueueDepth, StoreError> {
        let open = u64::try_from(self.open).map_err(StoreError::corrupt)?;
        Ok(QueueDepth { service_id: service_id(&self.service_id)?, open })
    }
}
