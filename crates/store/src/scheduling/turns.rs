//! Many dependents of a service are freed a part at a time, so that a batch that comes meanwhile waits only for
//! the parts before it.

use std::collections::BTreeSet;

use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::ServiceId;

use crate::sql::{Connection, Scheduler, Statement, StoreError};

/// How many dependents are freed at once.
pub(crate) const DEPENDENTS_AT_ONCE: usize = 128;

/// The services of these of which more dependents may be freed, because the batches that were free after the last
/// part are in lanes.
pub(crate) fn find_due_services<'a>(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut due = BTreeSet::new();
    for service_id in services {
        if let Some(until) = scheduler.turn_of(service_id) {
            if first_free_position(connection, service_id)?.is_some_and(|first| first <= until) {
                continue;
            }
            scheduler.end_turn(service_id);
        }
        due.insert(service_id.clone());
    }
    Ok(due)
}

/// A part of the dependents of locked services was freed, and there may be more.
pub(crate) fn begin_turns(
    connection: &mut Connection,
    scheduler: &Scheduler,
    services: &BTreeSet<ServiceId>,
) -> Result<(), StoreError> {
    for service_id in services {
        if let Some(until) = last_free_position(connection, service_id)? {
            scheduler.begin_turn(service_id, until);
        }
    }
    Ok(())
}

fn first_free_position(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let sql = "-- first_free_position
         select w.position from waiting_batches w
         where w.service_id = ? and w.position is not null and w.blocker_seq is null
         order by w.service_id, w.position limit 1";
    load_position(connection, sql, service_id)
}

fn last_free_position(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let sql = "-- last_free_position
         select w.position from waiting_batches w
         where w.service_id = ? and w.position is not null and w.blocker_seq is null
         order by w.service_id desc, w.position desc limit 1";
    load_position(connection, sql, service_id)
}

fn load_position(
    connection: &mut Connection,
    sql: &'static str,
    service_id: &ServiceId,
) -> Result<Option<i64>, StoreError> {
    let statement = Statement::new(connection.dialect(), sql).text(service_id.as_str());
    let rows: Vec<PositionRow> = connection.load(&statement)?;
    Ok(rows.first().map(|row| row.position))
}

#[derive(QueryableByName)]
struct PositionRow {
    #[diesel(sql_type = BigInt)]
    position: i64,
}
