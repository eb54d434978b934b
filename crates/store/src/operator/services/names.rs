use std::collections::BTreeSet;

use diesel::{QueryableByName, prelude::*, sql_types::Text};
use grid_batch_core::ServiceId;

use crate::sql::{
    Connection, Statement, StoreError,
    rows::limit,
    schema::{lanes, services},
};

/// The names of the services after one of them, in order.
pub(super) fn load_all_names(
    connection: &mut Connection,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<String>, StoreError> {
    let query = services::table
        .filter(services::service_id.gt(after.map_or("", ServiceId::as_str)))
        .order_by(services::service_id)
        .limit(limit(count))
        .select(services::service_id);
    connection.load_query("service_names", query)
}

/// The names of the services after one of them that have open batches, in order. All batches of a service may
/// wait without a lane.
pub(super) fn load_open_names(
    connection: &mut Connection,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<String>, StoreError> {
    let after = after.map_or("", ServiceId::as_str);
    let query = lanes::table
        .filter(lanes::busy)
        .filter(lanes::service_id.gt(after))
        .select(lanes::service_id)
        .distinct()
        .order_by(lanes::service_id)
        .limit(limit(count));
    let in_lanes: Vec<String> = connection.load_query("services_in_lanes", query)?;
    let mut names: BTreeSet<String> = in_lanes.into_iter().collect();
    names.extend(load_waiting_names(connection, after, count)?);
    Ok(names.into_iter().take(count).collect())
}

/// One row is read for each service.
fn load_waiting_names(
    connection: &mut Connection,
    after: &str,
    count: usize,
) -> Result<Vec<String>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- waiting_services
         with recursive waiting(service_id) as (
             select (select w.service_id from waiting_batches w where w.service_id > ?
                     order by w.service_id, w.batch_seq limit 1)
             union all
             select (select w.service_id from waiting_batches w where w.service_id > r.service_id
                     order by w.service_id, w.batch_seq limit 1)
             from waiting r where r.service_id is not null
         )
         select r.service_id from waiting r where r.service_id is not null limit ?",
    )
    .text(after)
    .long(limit(count));
    let rows: Vec<NameRow> = connection.load(&statement)?;
    Ok(rows.into_iter().map(|row| row.service_id).collect())
}

#[derive(QueryableByName)]
struct NameRow {
    #[diesel(sql_type = Text)]
    service_id: String,
}
