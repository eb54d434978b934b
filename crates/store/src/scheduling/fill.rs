//! Fills the lanes of services, by their strategies.

use grid_batch_core::{Scheduling, ServiceId, Strategy};

use super::{
    halts,
    lanes::{self, NextBatch, ServiceLanes, install_in_lanes, make_lanes},
    waiting::{self, WaitingRow, remove_waiting},
};
use crate::sql::{Connection, Scheduler, StoreError};

pub(crate) use super::lanes::InstalledRow;

/// How many lanes with held batches are added, for each lane that a service may have. Each change reads the
/// lanes of its service, so that there must be a limit.
const MOST_HELD: usize = 10;

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
        fill_service(connection, scheduler.of(service_id), service_id, &mut filled)?;
    }
    Ok(filled)
}

fn fill_service(
    connection: &mut Connection,
    scheduling: Scheduling,
    service_id: &ServiceId,
    filled: &mut Filled,
) -> Result<(), StoreError> {
    let mut new_holds = 0;
    loop {
        let mut lanes = lanes::load(connection, service_id)?;
        lanes.held += new_holds;
        let count = next_count(scheduling, &lanes);
        let next = find_next(connection, service_id, scheduling.strategy, count)?;
        let installed = install(connection, service_id, &lanes, next)?;
        // Their holds begin now, so that their lanes are not counted.
        let held = installed.iter().filter(|row| row.held).count();
        filled.extend(installed);
        new_holds += held;
        if held == 0 || scheduling.strategy != Strategy::Parallel {
            return Ok(());
        }
    }
}

/// How many batches of a service may become next now.
///
/// In the parallel strategy a batch that is held only stops what conflicts with it, so that its lane is not
/// counted.
fn next_count(Scheduling { strategy, lanes, .. }: Scheduling, present: &ServiceLanes) -> usize {
    let all = usize::try_from(lanes).unwrap_or(usize::MAX);
    match strategy {
        Strategy::Serial => 1_usize.saturating_sub(present.busy),
        Strategy::Pipeline => all.saturating_sub(present.busy),
        Strategy::Parallel => {
            let not_held = present.busy.saturating_sub(present.held);
            let most = all.saturating_mul(1 + MOST_HELD);
            all.saturating_sub(not_held).min(most.saturating_sub(present.busy))
        }
    }
}

fn find_next(
    connection: &mut Connection,
    service_id: &ServiceId,
    strategy: Strategy,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if strategy == Strategy::Parallel {
        return waiting::first_free(connection, service_id, count);
    }
    // Nothing overtakes the first one. In a pipeline, the ledger keeps the order of those that conflict.
    let first = waiting::first_waiting(connection, service_id, count)?;
    let halt = halts::first_halt(connection, service_id)?;
    let is_stopped = |batch: &WaitingRow| halt.is_some_and(|halt| batch.position > halt);
    let can_follow = |batch: &WaitingRow| match strategy {
        Strategy::Pipeline => !batch.depends_on_blocker,
        Strategy::Serial | Strategy::Parallel => batch.blocker_seq.is_none(),
    };
    Ok(first.into_iter().take_while(|batch| can_follow(batch) && !is_stopped(batch)).collect())
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
