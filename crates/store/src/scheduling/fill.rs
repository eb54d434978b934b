//! Fills the lanes of services, by their strategies.

use grid_batch_core::{ServiceId, Strategy};

use super::{
    halts,
    lanes::{self, NextBatch, ServiceLanes, install_in_lanes, make_lanes},
    waiting::{self, WaitingRow, remove_waiting},
};
use crate::sql::{Connection, Scheduler, StoreError};

pub(crate) use super::lanes::InstalledRow;

/// The batches that were installed in lanes.
pub(crate) type Filled = Vec<InstalledRow>;

/// Installs the next batches of locked services in their lanes.
pub(crate) fn fill_lanes<'a>(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<Filled, StoreError> {
    let mut filled = Filled::new();
    for service_id in services {
        fill_service(connection, &*scheduler.strategy(service_id), service_id, &mut filled)?;
    }
    Ok(filled)
}

fn fill_service(
    connection: &mut Connection,
    strategy: &dyn Strategy,
    service_id: &ServiceId,
    filled: &mut Filled,
) -> Result<(), StoreError> {
    let mut new_holds = 0;
    loop {
        let mut lanes = lanes::load(connection, service_id)?;
        lanes.counts.held += new_holds;
        let next = find_next(connection, service_id, strategy, strategy.room(lanes.counts))?;
        let installed = install(connection, service_id, &lanes, next)?;
        // Their holds begin now, and may make room for others.
        let held = installed.iter().filter(|row| row.held).count();
        filled.extend(installed);
        new_holds += held;
        if held == 0 || strategy.keeps_order() {
            return Ok(());
        }
    }
}

fn find_next(
    connection: &mut Connection,
    service_id: &ServiceId,
    strategy: &dyn Strategy,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if !strategy.keeps_order() {
        return waiting::first_free(connection, service_id, count);
    }
    let first = waiting::first_waiting(connection, service_id, count)?;
    let halt = halts::first_halt(connection, service_id)?;
    let can_follow = |batch: &WaitingRow| {
        strategy.may_follow(batch.blocked_by()) && !strategy.is_stopped(batch.position, halt)
    };
    Ok(first.into_iter().take_while(can_follow).collect())
}

fn install(
    connection: &mut Connection,
    service_id: &ServiceId,
    ServiceLanes { idle, next, .. }: &ServiceLanes,
    batches: Vec<WaitingRow>,
) -> Result<Filled, StoreError> {
    if batches.is_empty() {
        return Ok(Filled::new());
    }
    let new: Vec<i32> = (*next..).take(batches.len().saturating_sub(idle.len())).collect();
    make_lanes(connection, service_id, &new)?;
    let numbers = idle.iter().chain(&new).copied();
    let batches: Vec<NextBatch> =
        numbers.zip(batches).map(|(lane, batch)| batch.in_lane(lane)).collect();
    let installed = install_in_lanes(connection, service_id, &batches)?;
    remove_waiting(connection, batches.iter().map(|batch| batch.batch_seq))?;
    Ok(installed)
}

impl WaitingRow {
    fn in_lane(self, lane: i32) -> NextBatch {
        let Self { batch_seq, batch_id, created_at, blocker_seq, .. } = self;
        let position = Some(self.position);
        NextBatch { lane, batch_seq, batch_id, created_at, position, blocker_seq }
    }
}
