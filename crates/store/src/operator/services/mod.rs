//! Services with their queues and owners: a page is read with a few statements for all of its services.

mod claims;
mod names;
mod queues;

use std::collections::HashMap;

use diesel::prelude::*;
use grid_batch_core::{ServiceId, ServiceOverview, Timestamp};

pub(super) use claims::{claims, instances};

use self::{
    claims::load_owners,
    names::{load_all_names, load_open_names},
    queues::{Queue, load_oldest_waiting, load_queues, load_waiting_holds},
};
use crate::{
    halts::HaltOrigin,
    sql::{
        Connection, Store, StoreError,
        rows::service_id,
        schema::{halts, services as service_rows},
    },
};

pub(super) fn services(
    store: &Store,
    with_idle: bool,
    after: Option<&ServiceId>,
    count: usize,
) -> Result<Vec<ServiceOverview>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let names = if with_idle {
            load_all_names(connection, after, count)?
        } else {
            load_open_names(connection, after, count)?
        };
        load_overviews(store, connection, names)
    })
}

pub(super) fn service(
    store: &Store,
    service_id: &ServiceId,
) -> Result<Option<ServiceOverview>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let names = vec![service_id.to_string()];
        Ok(load_overviews(store, connection, names)?.pop())
    })
}

/// The services of these names that are stored, in this order.
fn load_overviews(
    store: &Store,
    connection: &mut Connection,
    names: Vec<String>,
) -> Result<Vec<ServiceOverview>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let added = load_added(connection, &names)?;
    let mut queues = load_queues(connection, &names)?;
    let oldest_waiting = load_oldest_waiting(connection, &names)?;
    let waiting_holds = load_waiting_holds(connection, &names)?;
    let halts = load_halts(connection, &names)?;
    let mut owners = load_owners(connection, &names)?;
    let overview = |name: &String| {
        let added = *added.get(name)?;
        Some(service_id(name).map(|service_id| {
            let Queue { ended, under_way, in_doubt, held, failing, parked, oldest_at } =
                queues.remove(name).unwrap_or_default();
            let waiting_at = oldest_waiting.get(name).copied();
            let halt = halts.get(name).copied();
            ServiceOverview {
                open: u64::try_from(added - ended).unwrap_or(0),
                under_way,
                in_doubt,
                oldest_at: oldest_at.into_iter().chain(waiting_at).min(),
                held: held + waiting_holds.get(name).copied().unwrap_or(0),
                failing,
                parked,
                halts: halt.map_or(0, |(count, _)| count),
                halted_since: halt.map(|(_, since)| since),
                scheduling: store.scheduler.of(&service_id),
                owner: owners.remove(name),
                service_id,
            }
        }))
    };
    names.iter().filter_map(overview).collect()
}

/// How many batches were ever added to each of these services.
fn load_added(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, i64>, StoreError> {
    let query = service_rows::table
        .filter(service_rows::service_id.eq_any(names.to_vec()))
        .select((service_rows::service_id, service_rows::added));
    let rows: Vec<(String, i64)> = connection.load_query("added", query)?;
    Ok(rows.into_iter().collect())
}

/// How many batches stop others until an operator decides, and since when.
fn load_halts(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, (u64, Timestamp)>, StoreError> {
    let query = halts::table
        .filter(halts::service_id.eq_any(names.to_vec()))
        .filter(halts::origin.eq(HaltOrigin::Policy.as_str()))
        .filter(halts::ends_until.is_null())
        .select((halts::service_id, halts::since));
    let rows: Vec<(String, i64)> = connection.load_query("halts_of_services", query)?;
    let mut of_services = HashMap::new();
    for (name, since) in rows {
        let since = Timestamp::from_micros(since);
        let (count, first) = of_services.entry(name).or_insert((0, since));
        *count += 1;
        *first = since.min(*first);
    }
    Ok(of_services)
}
