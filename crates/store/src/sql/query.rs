//! Operators' queries use Diesel's query builder. Hand-written SQL is used for statements that process every batch.

use diesel::{
    deserialize::FromSqlRow,
    dsl::auto_type,
    prelude::*,
    query_builder::{AsQuery, QueryFragment, QueryId},
    query_dsl::CompatibleType,
};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::{Progress, StoredBatch};

use super::{
    Connection, StoreError,
    any_connection::{MultiBackend, load_qualified},
    rows::{HeldRow, batch_id, is_parked, progress, service_id, time},
    schema::{batches, lanes},
};

impl Connection<'_> {
    /// Runs a query and returns its rows. The name is for the plan tests.
    #[cfg_attr(not(test), expect(unused_variables, reason = "only the plan tests use the name"))]
    pub(crate) fn load_query<Q, R>(
        &mut self,
        name: &'static str,
        query: Q,
    ) -> Result<Vec<R>, StoreError>
    where
        Q: AsQuery<Query: QueryFragment<MultiBackend> + QueryId>,
        Q::SqlType: CompatibleType<R, MultiBackend>,
        R: FromSqlRow<<Q::SqlType as CompatibleType<R, MultiBackend>>::SqlType, MultiBackend>,
    {
        let query = query.as_query();
        #[cfg(test)]
        crate::plans::queries::record_plan(self, name, &query)?;
        Ok(load_qualified(self, query)?)
    }
}

/// Whether a lane holds the batch.
#[auto_type]
pub(crate) fn lane_holds_batch() -> _ {
    lanes::service_id.eq(batches::service_id).and(lanes::batch_seq.eq(batches::seq.nullable()))
}

/// Every batch, with its lane if it is in one.
#[auto_type]
pub(crate) fn batches_with_lane() -> _ {
    batches::table.left_join(lanes::table.on(lane_holds_batch()))
}

/// A row of [`batches_with_lane`].
#[derive(Queryable, Selectable)]
pub(crate) struct BatchRecord {
    #[diesel(embed)]
    batch: BatchColumns,
    #[diesel(embed)]
    lane: Option<LaneColumns>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = batches)]
pub(crate) struct BatchColumns {
    seq: i64,
    service_id: String,
    batch_id: Vec<u8>,
    created_at: i64,
    ended_at: Option<i64>,
    dlt_status: Option<String>,
    attempts: i32,
    submitted_at: Option<i64>,
    checked_at: Option<i64>,
    last_error: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = lanes)]
pub(crate) struct LaneColumns {
    submitted: bool,
    dlt_status: Option<String>,
    commit_proven: bool,
    earlier_may_arrive: bool,
    invalid_reported: bool,
    attempts: i32,
    submitted_at: Option<i64>,
    since: Option<i64>,
    checked_at: Option<i64>,
    next_try_at: Option<i64>,
    delays: i32,
    last_error: Option<String>,
    held_at: Option<i64>,
    held_reason: Option<String>,
    held_until_decision: bool,
}

impl BatchRecord {
    pub(crate) fn seq(&self) -> i64 {
        self.batch.seq
    }

    pub(crate) fn service_name(&self) -> &str {
        &self.batch.service_id
    }

    /// Whether the batch is open and waits behind another one of its service.
    pub(crate) fn waits_behind_another(&self) -> bool {
        self.lane.is_none() && self.batch.ended_at.is_none()
    }

    /// The progress of a batch in a lane is stored in the lane; that of any other batch, in its own row.
    pub(crate) fn into_batch(self) -> Result<StoredBatch, StoreError> {
        let Self { batch, lane } = self;
        let lane = lane.unwrap_or_else(|| LaneColumns {
            submitted: batch.ended_at.is_some(),
            dlt_status: batch.dlt_status,
            commit_proven: false,
            earlier_may_arrive: false,
            invalid_reported: false,
            attempts: batch.attempts,
            submitted_at: batch.submitted_at,
            since: batch.ended_at,
            checked_at: batch.checked_at,
            next_try_at: None,
            delays: 0,
            last_error: batch.last_error,
            held_at: None,
            held_reason: None,
            held_until_decision: false,
        });
        let progress = Progress {
            commit_proven: lane.commit_proven,
            earlier_may_arrive: lane.earlier_may_arrive,
            invalid_reported: lane.invalid_reported,
            ..progress(lane.submitted, lane.dlt_status.as_deref(), lane.attempts)?
        };
        Ok(StoredBatch {
            progress,
            service_id: service_id(&batch.service_id)?,
            batch_id: batch_id(&batch.batch_id)?,
            created_at: Timestamp::from_micros(batch.created_at),
            submitted_at: time(lane.submitted_at),
            since: time(lane.since),
            checked_at: time(lane.checked_at),
            next_try_at: time(lane.next_try_at),
            parked: is_parked(progress, lane.delays),
            last_error: lane.last_error,
            held: HeldRow {
                held_at: lane.held_at,
                held_reason: lane.held_reason,
                held_until_decision: lane.held_until_decision,
            }
            .into_held(),
            ended_at: time(batch.ended_at),
        })
    }
}

pub(crate) fn into_batches(records: Vec<BatchRecord>) -> Result<Vec<StoredBatch>, StoreError> {
    records.into_iter().map(BatchRecord::into_batch).collect()
}

/// The number that a `count(*)` returned.
pub(crate) fn single_count(rows: &[i64]) -> Result<u64, StoreError> {
    let count = rows.first().ok_or_else(|| StoreError::corrupt("no answer to a count"))?;
    u64::try_from(*count).map_err(StoreError::corrupt)
}
