//! The lanes of a gas admin with a parked pool. Each holds the first open batch of a different pool.

use std::collections::{BTreeSet, HashMap};

use diesel::prelude::*;
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ServiceId, Timestamp};

use super::schema::withdrawals;
use crate::{
    batch::begin_waiting_holds,
    operator::load_open_times,
    scheduling::{InstalledRow, NextBatch, install_in_lanes, make_lanes},
    sql::{
        Connection, Rows, Statement, StoreError,
        query::{BatchRecord, lane_holds_batch},
        result_row,
        rows::{AHEAD, ServiceRow, is_ready, service_rows},
        schema::{batches, lanes},
    },
};

/// Installs new batches beside parked ones, if these locked services have any.
pub(super) fn fill_beside_parked<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a ServiceId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows: Vec<ServiceRow> = connection.load_rows(
        "-- services_with_parked_pools
         select distinct s.service_id
         from {x} join lanes s on s.service_id = x.service_id where s.pool_parked",
        service_rows(services),
    )?;
    let services = rows.iter().map(ServiceRow::read).collect::<Result<_, _>>()?;
    fill_by_pool(connection, &services, now).map(drop)
}

/// Installs the first open batches of pools that have none in a lane in lanes of these locked services. Such a batch is
/// installed if each batch in a lane is parked, comes later, or has no nonce although the new one has one.
///
/// All batches in lanes therefore belong to different pools. Among the pools that are not parked, the first open batch
/// and the one with the lowest open nonce are in lanes.
pub(super) fn fill_by_pool(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<Vec<InstalledRow>, StoreError> {
    let mut installed = Vec::new();
    for service_id in services {
        installed.extend(fill_service(connection, service_id, now)?);
    }
    let held = installed.iter().filter(|row| row.held);
    begin_waiting_holds(
        connection,
        held.map(|row| (row.service_id.as_str(), row.lane, row.batch_seq)),
    )?;
    Ok(installed)
}

fn fill_service(
    connection: &mut Connection,
    service_id: &ServiceId,
    now: Timestamp,
) -> Result<Vec<InstalledRow>, StoreError> {
    let lanes = load_lanes(connection, service_id, now)?;
    let mut in_lanes: Vec<PoolHead> = lanes.iter().filter_map(PoolLaneRow::pool_head).collect();
    let mut next = Vec::new();
    for first in load_first_open(connection, service_id)? {
        let pool_head = first.pool_head();
        if in_lanes.iter().all(|other| pool_head.may_be_beside(other)) {
            in_lanes.push(pool_head);
            next.push(first);
        }
    }
    let new = lanes.last().map_or(0, |last| last.lane + 1);
    let idle = lanes.iter().filter(|lane| lane.batch_seq.is_none()).map(|lane| lane.lane);
    let next: Vec<NextBatch> = next
        .into_iter()
        .zip(idle.chain(new..))
        .map(|(first, lane)| first.into_next(lane))
        .collect();
    if next.is_empty() {
        return Ok(Vec::new());
    }
    let made: Vec<i32> = next.iter().map(|next| next.lane).filter(|lane| *lane >= new).collect();
    if !made.is_empty() {
        make_lanes_by_pool(connection, service_id, &made)?;
    }
    install_in_lanes(connection, service_id, &next)
}

/// Creates more lanes, and marks all lanes of the service as holding batches of different pools.
fn make_lanes_by_pool(
    connection: &mut Connection,
    service_id: &ServiceId,
    lanes: &[i32],
) -> Result<(), StoreError> {
    make_lanes(connection, service_id, lanes)?;
    let mark = Statement::new(
        "-- mark_lanes_by_pool
         update lanes set by_pool = true where service_id = ?",
    )
    .text(service_id.as_str());
    connection.execute(&mark).map(drop)
}

fn load_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    now: Timestamp,
) -> Result<Vec<PoolLaneRow>, StoreError> {
    let (is_due, has_nonce) = (is_ready("s"), has_open_nonce("s.batch_seq"));
    let statement = Statement::new(format!(
        "-- lanes_of_pools
         select s.lane, s.batch_seq, s.created_at, s.pool_parked, ({is_due}) as is_due,
             {has_nonce} as has_nonce,
             (select w.pool from withdrawals w where w.batch_seq = s.batch_seq) as pool
         from lanes s where s.service_id = ? order by s.service_id, s.lane"
    ))
    .long(/* next_try_at */ now.as_micros())
    .long(/* since */ now.as_micros().saturating_add(AHEAD))
    .text(service_id.as_str());
    connection.load(&statement)
}

/// The first open batch of each pool of a gas admin, in order.
///
/// The pools are found one after the other by index, so that the cost does not depend on how many withdrawals wait. A
/// withdrawal without the event of its pool is open although its batch has ended.
pub(super) fn load_first_open(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<FirstOpenRow>, StoreError> {
    let has_nonce = has_open_nonce("b.seq");
    let statement = Statement::new(format!(
            "-- first_open_of_pools
             with recursive pools (pool) as (
                 select min(w.pool) from withdrawals w where w.service_id = ? and w.list_state = 'OPEN'
                 union all
                 select (
                     select min(w.pool) from withdrawals w
                     where w.service_id = ? and w.list_state = 'OPEN' and w.pool > r.pool)
                 from pools r where r.pool is not null
             )
             select r.pool, b.seq as batch_seq, b.batch_id, b.created_at, {has_nonce} as has_nonce
             from pools r join batches b on b.seq = (
                 select w.batch_seq from withdrawals w join batches o on o.seq = w.batch_seq
                 where w.service_id = ? and w.list_state = 'OPEN' and w.pool = r.pool and o.ended_at is null
                 order by w.service_id, w.pool, w.batch_seq limit 1)
             order by b.created_at"
        ),
    )
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str());
    connection.load(&statement)
}

/// The busy lanes of a gas admin, in its order.
pub(super) fn load_pool_heads(
    connection: &mut Connection,
    service_id: &ServiceId,
    now: Timestamp,
) -> Result<Vec<PoolHead>, StoreError> {
    let lanes = load_lanes(connection, service_id, now)?;
    Ok(lanes.iter().filter_map(PoolLaneRow::pool_head).collect())
}

/// A batch in a lane, or the first open one of its pool.
pub(super) struct PoolHead {
    /// `None`: its withdrawal is being moved at this moment.
    pub(super) pool: Option<String>,
    pub(super) created_at: i64,
    /// Whether only its pool is parked, so that batches of other pools overtake it.
    pub(super) is_parked: bool,
    /// Whether it can be taken, as far as other batches of the gas admin do not prevent it.
    pub(super) is_due: bool,
    has_nonce: bool,
}

impl PoolHead {
    fn may_be_beside(&self, other: &Self) -> bool {
        let is_first = self.created_at < other.created_at || (self.has_nonce && !other.has_nonce);
        self.pool != other.pool && (other.is_parked || is_first)
    }
}

result_row! {
    /// The first open batch of a pool.
    pub(super) struct FirstOpenRow {
        pub(super) pool: String,
        batch_seq: i64,
        batch_id: Vec<u8>,
        created_at: i64,
        has_nonce: bool,
    }
}

impl FirstOpenRow {
    fn pool_head(&self) -> PoolHead {
        let Self { created_at, has_nonce, .. } = *self;
        let pool = Some(self.pool.clone());
        PoolHead { pool, created_at, is_parked: false, is_due: true, has_nonce }
    }

    fn into_next(self, lane: i32) -> NextBatch {
        let Self { batch_seq, batch_id, created_at, .. } = self;
        NextBatch { lane, batch_seq, batch_id, created_at, position: None, blocker_seq: None }
    }
}

result_row! {
    struct PoolLaneRow {
        lane: i32,
        batch_seq: Option<i64>,
        created_at: Option<i64>,
        pool_parked: bool,
        is_due: bool,
        has_nonce: bool,
        /// The pool of the batch in the lane.
        pool: Option<String>,
    }
}

impl PoolLaneRow {
    /// `None`: the lane is idle.
    fn pool_head(&self) -> Option<PoolHead> {
        let Self { pool_parked: is_parked, is_due, has_nonce, .. } = *self;
        let created_at = self.created_at?;
        Some(PoolHead { pool: self.pool.clone(), created_at, is_parked, is_due, has_nonce })
    }
}

/// The condition that the batch belongs to a withdrawal with an open nonce.
fn has_open_nonce(batch_seq: &str) -> String {
    format!(
        "coalesce((
             select n.outcome is null from account_nonces n
             where n.withdrawal_seq = (select o.seq from withdrawals o where o.batch_seq = {batch_seq})
             order by n.withdrawal_seq desc, n.nonce desc limit 1), false)"
    )
}

/// Those of these batches whose withdrawals have an open nonce.
pub(super) fn with_open_nonce(
    connection: &mut Connection,
    batch_seqs: &[i64],
) -> Result<BTreeSet<i64>, StoreError> {
    let has_nonce = has_open_nonce("x.batch_seq");
    let statement = Statement::new(format!(
        "-- batches_with_nonces\n select x.batch_seq as number from {{x}} where {has_nonce}"
    ))
    .rows(Rows::default().long("batch_seq", batch_seqs.iter().copied()));
    Ok(connection.load_column::<i64>(&statement)?.into_iter().collect())
}

/// What is ahead of the open withdrawals of a gas admin that were stored at these times. `None`: its batches wait in
/// one order.
pub(super) fn ahead(
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<Option<Vec<Option<Ahead>>>, StoreError> {
    let lanes = LaneBatches::load(connection, service_id)?;
    let Some(first) = lanes.0.first() else { return Ok(None) };
    let last = created_at.iter().max().copied().unwrap_or_default();
    let open = load_open_times(connection, service_id, first.batch.created_at, last)?;
    let pools = load_pools(connection, service_id, created_at)?;
    let before = |at: Timestamp| {
        u64::try_from(open.partition_point(|open| *open < at.as_micros())).unwrap_or(u64::MAX)
    };
    let ahead_of = |at: &Timestamp| {
        let head = lanes.head_of(*at, pools.get(&at.as_micros()).map(String::as_str))?;
        let more = before(*at) > Ahead::MAX_COUNTED;
        let count = before(*at).min(Ahead::MAX_COUNTED);
        let count = count.saturating_sub(before(head.batch.created_at));
        let (reason, head) = (WaitReason::Behind, Some(head.batch.clone()));
        Some(Ahead { reason, head, head_waits: false, count, more })
    };
    Ok(Some(created_at.iter().map(ahead_of).collect()))
}

/// The batches in the lanes of a gas admin, the oldest first.
struct LaneBatches(Vec<LaneBatch>);

struct LaneBatch {
    batch: StoredBatch,
    /// Whether it is parked, so that withdrawals of other pools overtake it.
    is_parked: bool,
    pool: String,
}

impl LaneBatches {
    fn load(connection: &mut Connection, service_id: &ServiceId) -> Result<Self, StoreError> {
        let query = lanes::table
            .inner_join(batches::table.on(lane_holds_batch()))
            .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
            .filter(lanes::service_id.eq(service_id.as_str()))
            .filter(lanes::by_pool)
            .order_by(lanes::created_at)
            .select((BatchRecord::as_select(), lanes::pool_parked, withdrawals::pool));
        let rows: Vec<(BatchRecord, bool, String)> = connection.load_query("pool_heads", query)?;
        rows.into_iter()
            .map(|(batch, is_parked, pool)| {
                Ok(LaneBatch { batch: batch.into_batch()?, is_parked, pool })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The batch in a lane for which a withdrawal of a pool waits: that of its pool if the pool is parked, or the first
    /// one that is not parked.
    fn head_of(&self, at: Timestamp, pool: Option<&str>) -> Option<&LaneBatch> {
        let own = self.0.iter().find(|lane| Some(lane.pool.as_str()) == pool && lane.is_parked);
        let not_parked = self.0.iter().find(|lane| !lane.is_parked);
        let first = own.or(not_parked).or(self.0.first())?;
        (first.batch.created_at < at).then_some(first)
    }
}

/// The pools of the withdrawals of a service whose batches were stored at these times.
fn load_pools(
    connection: &mut Connection,
    service_id: &ServiceId,
    created_at: &[Timestamp],
) -> Result<HashMap<i64, String>, StoreError> {
    let created_at: Vec<i64> = created_at.iter().map(|at| at.as_micros()).collect();
    let query = batches::table
        .inner_join(withdrawals::table.on(withdrawals::batch_seq.eq(batches::seq)))
        .filter(batches::service_id.eq(service_id.as_str()))
        .filter(batches::created_at.eq_any(created_at))
        .select((batches::created_at, withdrawals::pool));
    Ok(connection.load_query("pools_of_batches", query)?.into_iter().collect())
}
