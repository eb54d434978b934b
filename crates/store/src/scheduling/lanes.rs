//! The lanes of a service, and the installation of its next batches in them according to its strategy.

use grid_batch_core::ServiceId;
use grid_batch_core::queue::{AnyStrategy, BlockedBy, LaneCounts, Strategy};

use super::waiting::{
    WaitingRow, first_free, first_waiting, first_waiting_blocked, remove_waiting,
};
use crate::{
    halts::first_halt,
    sql::{Connection, Rows, Scheduler, Statement, StoreError, result_row},
};

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
        fill_service(connection, scheduler.strategy(service_id), service_id, &mut filled)?;
    }
    Ok(filled)
}

fn fill_service(
    connection: &mut Connection,
    strategy: AnyStrategy,
    service_id: &ServiceId,
    filled: &mut Filled,
) -> Result<(), StoreError> {
    let mut new_holds = 0;
    loop {
        let mut lanes = load_lanes(connection, service_id)?;
        lanes.counts.held += new_holds;
        let next = find_next(connection, service_id, strategy, strategy.room(lanes.counts))?;
        let installed = install(connection, service_id, &lanes, next)?;
        // The holds of these batches begin now and may make room for others.
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
    strategy: AnyStrategy,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if !strategy.keeps_order() {
        let mut next = first_free(connection, service_id, count)?;
        let left = count - next.len();
        if left > 0 && strategy.may_follow(Some(BlockedBy::Conflict)) {
            next.extend(first_blocked(connection, service_id, strategy, left)?);
        }
        return Ok(next);
    }
    let first = first_waiting(connection, service_id, count)?;
    let halt = first_halt(connection, service_id)?;
    let can_follow = |batch: &WaitingRow| {
        strategy.may_follow(batch.blocked_by()) && !strategy.is_stopped(batch.position, halt)
    };
    Ok(first.into_iter().take_while(can_follow).collect())
}

/// The first batches that wait for others and may be sent in a list with them. None that waits is before one of them, if
/// those that wait for nothing have lanes.
fn first_blocked(
    connection: &mut Connection,
    service_id: &ServiceId,
    strategy: AnyStrategy,
    count: usize,
) -> Result<Vec<WaitingRow>, StoreError> {
    let first = first_waiting_blocked(connection, service_id, count)?;
    let can_follow = |batch: &WaitingRow| strategy.may_follow(batch.blocked_by());
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

/// The lanes of a service.
#[derive(Debug, Default)]
struct ServiceLanes {
    counts: LaneCounts,
    /// The numbers of the idle lanes, in order.
    idle: Vec<i32>,
    /// The number of the next lane to create.
    next: i32,
}

fn load_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<ServiceLanes, StoreError> {
    let statement = Statement::new(
        "-- load_lanes
         select s.lane, s.busy, s.held_at is not null as is_held from lanes s
         where s.service_id = ? order by s.service_id, s.lane",
    )
    .text(service_id.as_str());
    let rows: Vec<(i32, bool, bool)> = connection.load_tuples(&statement)?;
    Ok(ServiceLanes {
        counts: LaneCounts {
            busy: rows.iter().filter(|(_, busy, _)| *busy).count(),
            held: rows.iter().filter(|(_, busy, is_held)| *busy && *is_held).count(),
        },
        idle: rows.iter().filter(|(_, busy, _)| !busy).map(|(lane, ..)| *lane).collect(),
        next: rows.last().map_or(0, |(lane, ..)| lane + 1),
    })
}

/// Creates lanes. They get the epoch of the claim, which only changes under the lock of the service.
pub(crate) fn make_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    lanes: &[i32],
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- make_lanes
         insert into lanes (service_id, lane, epoch)
         select x.service_id, x.lane, c.epoch
         from {x} join service_id_claims c on c.service_id = x.service_id",
        Rows::default()
            .text("service_id", lanes.iter().map(|_| service_id.as_str()))
            .int("lane", lanes.iter().copied()),
    )
}

/// A batch to be installed in a lane.
pub(crate) struct NextBatch {
    pub(crate) lane: i32,
    pub(crate) batch_seq: i64,
    pub(crate) batch_id: Vec<u8>,
    pub(crate) created_at: i64,
    /// `None`: the batches of its service wait in the order of `created_at`.
    pub(crate) position: Option<i64>,
    pub(crate) blocker_seq: Option<i64>,
}

/// Installs batches in idle lanes.
pub(crate) fn install_in_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    batches: &[NextBatch],
) -> Result<Vec<InstalledRow>, StoreError> {
    let installed: Vec<InstalledRow> = connection.load_rows(
        "-- install_in_lanes
         update lanes
         set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at,
             position = x.position, blocker_seq = x.blocker_seq
         from {x}
         where lanes.service_id = x.service_id and lanes.lane = x.lane and lanes.batch_seq is null
         returning lanes.service_id, lanes.lane, lanes.batch_id, lanes.batch_seq, coalesce(
                 lanes.batch_seq <= (select d.restored_seq from database_state d where d.id = 1),
                 false) as restored,
             (select count(*) from waiting_holds w where w.batch_seq = lanes.batch_seq) > 0 as held",
        Rows::default()
            .text("service_id", batches.iter().map(|_| service_id.as_str()))
            .int("lane", batches.iter().map(|batch| batch.lane))
            .long("batch_seq", batches.iter().map(|batch| batch.batch_seq))
            .bytes("batch_id", batches.iter().map(|batch| batch.batch_id.as_slice()))
            .long("created_at", batches.iter().map(|batch| batch.created_at))
            .optional_long("position", batches.iter().map(|batch| batch.position))
            .optional_long("blocker_seq", batches.iter().map(|batch| batch.blocker_seq)),
    )?;
    if installed.len() == batches.len() {
        Ok(installed)
    } else {
        Err(StoreError::corrupt("a lane that was idle is busy"))
    }
}

result_row! {
    /// A batch that was installed in a lane.
    pub(crate) struct InstalledRow {
        pub(crate) service_id: String,
        pub(crate) lane: i32,
        pub(crate) batch_id: Vec<u8>,
        pub(crate) batch_seq: i64,
        /// Whether it was stored before the database was restored.
        pub(crate) restored: bool,
        /// Whether a hold begins with its turn.
        pub(crate) held: bool,
    }
}
