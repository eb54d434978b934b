//! The lanes of a service, and the installation of its next batches in them.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Bool, Integer, Text},
};
use grid_batch_core::{LaneCounts, ServiceId};

use crate::sql::{Connection, Rows, Statement, StoreError};

/// The lanes of a service.
#[derive(Debug, Default)]
pub(super) struct ServiceLanes {
    pub(super) counts: LaneCounts,
    /// In order.
    pub(super) idle: Vec<i32>,
    /// The number of the next lane that is made.
    pub(super) next: i32,
}

pub(super) fn load(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<ServiceLanes, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- load_lanes
         select s.lane, s.busy, s.held_at is not null as is_held from lanes s
         where s.service_id = ? order by s.service_id, s.lane",
    )
    .text(service_id.as_str());
    let rows: Vec<LaneRow> = connection.load(&statement)?;
    Ok(ServiceLanes {
        counts: LaneCounts {
            busy: rows.iter().filter(|row| row.busy).count(),
            held: rows.iter().filter(|row| row.busy && row.is_held).count(),
        },
        idle: rows.iter().filter(|row| !row.busy).map(|row| row.lane).collect(),
        next: rows.last().map_or(0, |row| row.lane + 1),
    })
}

/// Makes lanes. They get the epoch of the claim, which only changes under the lock of the service.
pub(crate) fn make_lanes(
    connection: &mut Connection,
    service_id: &ServiceId,
    lanes: &[i32],
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- make_lanes
         insert into lanes (service_id, lane, epoch)
         select x.service_id, x.lane, c.epoch
         from {x} join service_id_claims c on c.service_id = x.service_id",
    )
    .rows(
        Rows::default()
            .text("service_id", lanes.iter().map(|_| service_id.as_str()))
            .int("lane", lanes.iter().copied()),
    );
    connection.execute(&statement).map(drop)
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
    let statement = Statement::new(
        connection.dialect(),
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
    )
    .rows(
        Rows::default()
            .text("service_id", batches.iter().map(|_| service_id.as_str()))
            .int("lane", batches.iter().map(|batch| batch.lane))
            .long("batch_seq", batches.iter().map(|batch| batch.batch_seq))
            .bytes("batch_id", batches.iter().map(|batch| batch.batch_id.as_slice()))
            .long("created_at", batches.iter().map(|batch| batch.created_at))
            .optional_long("position", batches.iter().map(|batch| batch.position))
            .optional_long("blocker_seq", batches.iter().map(|batch| batch.blocker_seq)),
    );
    let installed: Vec<InstalledRow> = connection.load(&statement)?;
    match installed.len() == batches.len() {
        true => Ok(installed),
        false => Err(StoreError::corrupt("a lane that was idle is busy")),
    }
}

/// A batch that was installed in a lane.
#[derive(QueryableByName)]
pub(crate) struct InstalledRow {
    #[diesel(sql_type = Text)]
    pub(crate) service_id: String,
    #[diesel(sql_type = Integer)]
    pub(crate) lane: i32,
    #[diesel(sql_type = Binary)]
    pub(crate) batch_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    pub(crate) batch_seq: i64,
    /// It was stored before the database was restored.
    #[diesel(sql_type = Bool)]
    pub(crate) restored: bool,
    /// A hold begins with its turn.
    #[diesel(sql_type = Bool)]
    pub(crate) held: bool,
}

#[derive(QueryableByName)]
struct LaneRow {
    #[diesel(sql_type = Integer)]
    lane: i32,
    #[diesel(sql_type = Bool)]
    busy: bool,
    #[diesel(sql_type = Bool)]
    is_held: bool,
}
