//! Lists of batches by state. If batches of a service wait because of declared access, they may be older than those in
//! its lanes, and its lanes may even be empty.

use diesel::{
    alias,
    dsl::{count_star, exists, not, sql},
    prelude::*,
    sql_types::{BigInt, Bool, Text},
};
use grid_batch_core::batches::{BatchState, DltStatus, StoredBatch};
use grid_batch_core::queries::{BatchFilter, PageCursor, QueueDepth};
use grid_batch_core::{ServiceId, Timestamp};

use crate::sql::{
    Connection, Store, StoreError,
    query::{BatchRecord, batches_with_lane, into_batches, lane_holds_batch, single_count},
    rows::{limit, time},
    schema::{batches, lanes, services, transaction_receipts, waiting_batches},
};

alias!(lanes as heads: Heads, lanes as older_heads: OlderHeads);

/// Binds `$source` to the batches in a state, joined with their lanes, and `$service_id` to the
/// column that orders the source by service; then evaluates `$then`.
///
/// Each state has a different source, so that batches in other states are not read. Each source has its own type, so
/// this is a macro. If the source starts from lanes, it skips those of services before `$first_service`.
macro_rules! with_batches_in_state {
    ($state:expr, $first_service:expr, |$source:ident, $service_id:ident| $then:expr) => {
        match $state {
            None => {
                let ($source, $service_id) =
                    (batches_with_lane().into_boxed(), batches::service_id);
                $then
            }
            Some(BatchState::Committed) => {
                let committed = batches::dlt_status.eq(DltStatus::Committed.as_str());
                let $source = batches_with_lane().filter(committed).into_boxed();
                let $service_id = batches::service_id;
                $then
            }
            // Each invalid batch has a receipt at position 0.
            Some(BatchState::Invalid) => {
                let with_receipt = transaction_receipts::table
                    .filter(transaction_receipts::position.eq(0))
                    .select(transaction_receipts::batch_seq);
                let $source = batches_with_lane()
                    .filter(batches::seq.eq_any(with_receipt))
                    .filter(batches::dlt_status.eq(DltStatus::Invalid.as_str()))
                    .into_boxed();
                let $service_id = batches::service_id;
                $then
            }
            // A new batch is the oldest one in a lane of its service, follows that one, or is in no lane.
            Some(BatchState::New) => {
                let $service_id = heads.field(lanes::service_id);
                let older_head = older_heads
                    .filter(older_heads.field(lanes::busy))
                    .filter(older_heads.field(lanes::service_id).eq($service_id))
                    .filter(
                        older_heads.field(lanes::created_at).lt(heads.field(lanes::created_at)),
                    );
                let not_before_head = batches::service_id
                    .eq($service_id)
                    .and(batches::created_at.nullable().ge(heads.field(lanes::created_at)));
                let is_new_head = not(lanes::submitted).and(lanes::dlt_status.is_null());
                let $source = heads
                    .inner_join(batches::table.on(not_before_head))
                    .left_join(lanes::table.on(lane_holds_batch()))
                    .filter(heads.field(lanes::busy))
                    .filter($service_id.ge($first_service))
                    .filter(not(exists(older_head)))
                    .filter(batches::ended_at.is_null())
                    .filter(lanes::batch_seq.is_null().or(is_new_head))
                    .into_boxed();
                $then
            }
            Some(state) => {
                let in_lanes = lanes::table
                    .inner_join(batches::table.on(lane_holds_batch()))
                    .filter(lanes::busy)
                    .filter(lanes::service_id.ge($first_service))
                    .filter(lanes::submitted.eq(state.submitted()))
                    .into_boxed();
                let $source = match state.dlt_status() {
                    Some(status) => in_lanes.filter(lanes::dlt_status.eq(status.as_str())),
                    None => in_lanes.filter(lanes::dlt_status.is_null()),
                };
                let $service_id = lanes::service_id;
                $then
            }
        }
    };
}

impl Store {
    /// One page of batches, ordered by service and then by age, the oldest first.
    ///
    /// The cost of a page grows with the number of batches that it shows and that the filter skips.
    pub fn list(
        &self,
        filter: &BatchFilter,
        after: Option<&PageCursor>,
        count: usize,
    ) -> Result<Vec<StoredBatch>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let mut batches = list_by_state(self, connection, filter, after, count)?;
            if filter.state == Some(BatchState::New) {
                batches.extend(list_waiting(connection, filter.service_id.as_ref(), after, count)?);
                let key = |batch: &StoredBatch| (batch.service_id.clone(), batch.created_at);
                batches.sort_by_cached_key(key);
                batches.dedup_by_key(|batch| key(batch));
                batches.truncate(count);
            }
            Ok(batches)
        })
    }

    /// How many batches the filter selects.
    pub fn count(&self, filter: &BatchFilter) -> Result<u64, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let waiting = match filter.state {
                Some(BatchState::New) => {
                    count_before_heads(connection, filter.service_id.as_ref())?
                }
                _ => 0,
            };
            Ok(count_by_state(connection, filter)? + waiting)
        })
    }

    /// How many open batches a service has. The cost does not depend on their number.
    pub fn depth(&self, service: &ServiceId) -> Result<u64, StoreError> {
        let query = services::table
            .inner_join(lanes::table)
            .filter(services::service_id.eq(service.as_str()))
            .select((services::added, lanes::ended));
        let lanes: Vec<(i64, i64)> = self.pools.read()?.load_query("depth", query)?;
        let added = lanes.first().map_or(0, |(added, _)| *added);
        let ended: i64 = lanes.iter().map(|(_, ended)| ended).sum();
        u64::try_from(added - ended).map_err(StoreError::corrupt)
    }

    /// Up to `count` services after `after` that have open batches, each with their number, ordered by name.
    pub fn depths(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> Result<Vec<QueueDepth>, StoreError> {
        let after = after.map_or("", ServiceId::as_str);
        // The sum of a bigint is a numeric for PostgreSQL, which Diesel does not cast back.
        let open = sql::<BigInt>("cast(added - sum(ended) as bigint)");
        let query = services::table
            .inner_join(lanes::table)
            .filter(services::service_id.gt(after))
            .filter(lanes::service_id.gt(after))
            .group_by((services::service_id, services::added))
            .having(sql::<Bool>("added > sum(ended)"))
            .order_by(services::service_id)
            .limit(limit(count))
            .select((services::service_id, open));
        let depths: Vec<(String, i64)> = self.pools.read()?.load_query("depths", query)?;
        depths
            .into_iter()
            .filter_map(|(name, open)| Some((self.unreadable.read(&name)?, open)))
            .map(|(service_id, open)| {
                let open = u64::try_from(open).map_err(StoreError::corrupt)?;
                Ok(QueueDepth { service_id, open })
            })
            .collect()
    }
}

/// If the name of a service cannot be read, reads again without its batches.
fn list_by_state(
    store: &Store,
    connection: &mut Connection,
    filter: &BatchFilter,
    after: Option<&PageCursor>,
    count: usize,
) -> Result<Vec<StoredBatch>, StoreError> {
    loop {
        let left_out = store.unreadable.names();
        let records = load_by_state(connection, filter, after, count, &left_out)?;
        records.iter().for_each(|record| drop(store.unreadable.read(record.service_name())));
        if store.unreadable.count() == left_out.len() {
            return into_batches(records);
        }
    }
}

fn load_by_state(
    connection: &mut Connection,
    filter: &BatchFilter,
    after: Option<&PageCursor>,
    count: usize,
    left_out: &[String],
) -> Result<Vec<BatchRecord>, StoreError> {
    let first_service = after.map_or("", |cursor| cursor.service_id.as_str());
    with_batches_in_state!(filter.state, first_service, |source, service_column| {
        let mut page = source
            .select(BatchRecord::as_select())
            .order_by((service_column, batches::created_at))
            .limit(limit(count));
        if let Some(service_id) = &filter.service_id {
            page = page.filter(service_column.eq(service_id.as_str()));
        }
        if let Some(cursor) = after {
            // Written as SQL, because Diesel has no row comparison, which lets an index find the start of the page.
            page = page.filter(
                sql::<Bool>("(batches.service_id, batches.created_at) > (")
                    .bind::<Text, _>(cursor.service_id.as_str())
                    .sql(", ")
                    .bind::<BigInt, _>(cursor.created_at.as_micros())
                    .sql(")"),
            );
        }
        if !left_out.is_empty() {
            page = page.filter(service_column.ne_all(left_out));
        }
        connection.load_query("list", page)
    })
}

fn count_by_state(connection: &mut Connection, filter: &BatchFilter) -> Result<u64, StoreError> {
    let counts: Vec<i64> = with_batches_in_state!(filter.state, "", |source, service_column| {
        let mut selected = source.select(count_star());
        if let Some(service_id) = &filter.service_id {
            selected = selected.filter(service_column.eq(service_id.as_str()));
        }
        connection.load_query("count", selected)?
    });
    single_count(&counts)
}

/// A page of the waiting batches, in the order of their services and times. Their numbers have the same order.
fn list_waiting(
    connection: &mut Connection,
    service_id: Option<&ServiceId>,
    after: Option<&PageCursor>,
    count: usize,
) -> Result<Vec<StoredBatch>, StoreError> {
    let mut page = waiting_batches::table
        .inner_join(batches::table.left_join(lanes::table.on(lane_holds_batch())))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(limit(count))
        .select(BatchRecord::as_select())
        .into_boxed();
    if let Some(service_id) = service_id {
        page = page.filter(waiting_batches::service_id.eq(service_id.as_str()));
    }
    if let Some(cursor) = after {
        page = page.filter(
            sql::<Bool>("(waiting_batches.service_id, waiting_batches.batch_seq) > (")
                .bind::<Text, _>(cursor.service_id.as_str())
                .sql(", ")
                .bind::<BigInt, _>(last_seq(connection, cursor)?)
                .sql(")"),
        );
    }
    into_batches(connection.load_query("list_waiting", page)?)
}

/// The number of the last batch of a service on the previous page.
fn last_seq(connection: &mut Connection, cursor: &PageCursor) -> Result<i64, StoreError> {
    let query = batches::table
        .filter(batches::service_id.eq(cursor.service_id.as_str()))
        .filter(batches::created_at.le(cursor.created_at.as_micros()))
        .order_by((batches::service_id.desc(), batches::created_at.desc()))
        .limit(1)
        .select(batches::seq);
    let found: Vec<i64> = connection.load_query("last_seq", query)?;
    Ok(found.first().copied().unwrap_or(0))
}

/// How many waiting batches are older than all batches in the lanes of their service.
fn count_before_heads(
    connection: &mut Connection,
    service_id: Option<&ServiceId>,
) -> Result<u64, StoreError> {
    let older_head = lanes::table
        .filter(lanes::service_id.eq(waiting_batches::service_id))
        .filter(lanes::busy)
        .filter(lanes::created_at.lt(batches::created_at.nullable()));
    let mut query = waiting_batches::table
        .inner_join(batches::table)
        .filter(not(exists(older_head)))
        .select(count_star())
        .into_boxed();
    if let Some(service_id) = service_id {
        query = query.filter(waiting_batches::service_id.eq(service_id.as_str()));
    }
    single_count(&connection.load_query("count_before_heads", query)?)
}

/// When the oldest waiting batch of a service was stored.
pub(super) fn oldest_waiting(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<Timestamp>, StoreError> {
    let query = waiting_batches::table
        .inner_join(batches::table)
        .filter(waiting_batches::service_id.eq(service_id.as_str()))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(1)
        .select(batches::created_at);
    let found: Vec<i64> = connection.load_query("oldest_waiting", query)?;
    Ok(time(found.first().copied()))
}
