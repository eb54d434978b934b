//! The lanes of a gas admin of which a pool is parked: each has the first open batch of another pool.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text},
};
use grid_batch_core::ServiceId;

use super::lane::Lane;
use crate::{
    scheduling::{InstalledRow, NextBatch, install_in_lanes, make_lanes},
    sql::{Connection, Statement, StoreError},
};

/// The services of which a pool was parked by this change.
pub(super) fn with_parked_pool(lanes: &[&Lane]) -> BTreeSet<ServiceId> {
    let parked = lanes.iter().filter(|lane| lane.delay.pool_parked && lane.position.is_none());
    parked.map(|lane| lane.service_id.clone()).collect()
}

/// Installs the first open batches of pools that are in no lane of these locked services, where they come
/// before all batches in lanes whose pools are not parked.
///
/// So no lane has a later batch than one that is not parked and that could be next, and all batches in lanes
/// are of different pools.
pub(super) fn fill_by_pool(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
) -> Result<Vec<InstalledRow>, StoreError> {
    let mut installed = Vec::new();
    for service_id in services {
        installed.extend(fill_service(connection, service_id)?);
    }
    Ok(installed)
}

fn fill_service(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<InstalledRow>, StoreError> {
    let lanes = load_lanes(connection, service_id)?;
    let in_lanes: BTreeSet<&str> = lanes.iter().filter_map(|lane| lane.pool.as_deref()).collect();
    let first_open = load_first_open(connection, service_id)?;
    let next = first_open.into_iter().find(|batch| !in_lanes.contains(batch.pool.as_str()));
    let Some(next) = next.filter(|next| lanes.iter().all(|lane| lane.lets_pass(next))) else {
        return Ok(Vec::new());
    };
    let lane = match lanes.iter().find(|lane| lane.batch_seq.is_none()) {
        Some(idle) => idle.lane,
        None => make_lane(connection, service_id, &lanes)?,
    };
    let FirstOpenRow { batch_seq, batch_id, created_at, .. } = next;
    let (position, blocker_seq) = (None, None);
    let next = NextBatch { lane, batch_seq, batch_id, created_at, position, blocker_seq };
    install_in_lanes(connection, service_id, &[next])
}

/// Makes another lane, and marks all lanes of the service as having batches of different pools.
fn make_lane(
    connection: &mut Connection,
    service_id: &ServiceId,
    lanes: &[LaneRow],
) -> Result<i32, StoreError> {
    let lane = lanes.last().map_or(0, |lane| lane.lane + 1);
    make_lanes(connection, service_id, &[lane])?;
    let mark = Statement::new(
        connection.dialect(),
        "-- mark_lanes_by_pool
         update lanes set by_pool = true where service_id = ?",
    )
    .text(service_id.as_str());
    connection.execute(&mark)?;
    Ok(lane)
}

fn load_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<LaneRow>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- lanes_of_pools
         select s.lane, s.batch_seq, s.created_at, s.pool_parked,
             (select w.pool from withdrawals w where w.batch_seq = s.batch_seq) as pool
         from lanes s where s.service_id = ? order by s.service_id, s.lane",
    )
    .text(service_id.as_str());
    connection.load(&statement)
}

/// The first open batch of each pool of a gas admin, in order.
///
/// The pools are found one after the other by index, so that the cost does not depend on how many
/// withdrawals wait. A withdrawal without the event of its pool is open although its batch has ended.
pub(crate) fn load_first_open(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Vec<FirstOpenRow>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- first_open_of_pools
         with recursive pools (pool) as (
             select min(w.pool) from withdrawals w where w.service_id = ? and w.list_state = 'OPEN'
             union all
             select (
                 select min(w.pool) from withdrawals w
                 where w.service_id = ? and w.list_state = 'OPEN' and w.pool > r.pool)
             from pools r where r.pool is not null
         )
         select r.pool, b.seq as batch_seq, b.batch_id, b.created_at
         from pools r join batches b on b.seq = (
             select w.batch_seq from withdrawals w join batches o on o.seq = w.batch_seq
             where w.service_id = ? and w.list_state = 'OPEN' and w.pool = r.pool and o.ended_at is null
             order by w.service_id, w.pool, w.batch_seq limit 1)
         order by b.created_at",
    )
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str());
    connection.load(&statement)
}

/// The pools of a gas admin that are parked.
pub(crate) fn load_parked_pools(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<BTreeSet<String>, StoreError> {
    let lanes = load_lanes(connection, service_id)?;
    Ok(lanes.into_iter().filter(|lane| lane.pool_parked).filter_map(|lane| lane.pool).collect())
}

/// The first open batch of a pool.
#[derive(QueryableByName)]
pub(crate) struct FirstOpenRow {
    #[diesel(sql_type = Text)]
    pub(crate) pool: String,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}

#[derive(QueryableByName)]
struct LaneRow {
    #[diesel(sql_type = Integer)]
    lane: i32,
    #[diesel(sql_type = Nullable<BigInt>)]
    batch_seq: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    created_at: Option<i64>,
    #[diesel(sql_type = Bool)]
    pool_parked: bool,
    /// The pool of the batch in it.
    #[diesel(sql_type = Nullable<Text>)]
    pool: Option<String>,
}

impl LaneRow {
    /// Whether the batch can become next beside the one in this lane.
    fn lets_pass(&self, next: &FirstOpenRow) -> bool {
        self.pool_parked || self.created_at.is_none_or(|created_at| next.created_at < created_at)
    }
}
