//! Services with their queues. A page is read with a few statements for all of its services.

use std::collections::{BTreeSet, HashMap};

use diesel::prelude::*;
use grid_batch_core::batches::DltStatus;
use grid_batch_core::queries::ServiceOverview;
use grid_batch_core::{ServiceId, Timestamp};

use super::claims::load_owners;
use crate::{
    halts::HaltOrigin,
    sql::{
        Connection, Statement, Store, StoreError,
        rows::{limit, service_id},
        schema::{batches, halts, lanes, services, waiting_batches, waiting_holds},
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

/// The stored services with these names, in this order.
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
            let Queue { ended, under_way, in_doubt, held, lanes, failing, parked, oldest_at } =
                queues.remove(name).unwrap_or_default();
            let waiting_at = oldest_waiting.get(name).copied();
            let halt = halts.get(name).copied();
            ServiceOverview {
                open: u64::try_from(added - ended).unwrap_or(0),
                under_way,
                in_doubt,
                oldest_at: oldest_at.into_iter().chain(waiting_at).min(),
                held: held + waiting_holds.get(name).copied().unwrap_or(0),
                stopped_by_holds: held > 0 && held == lanes,
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
    let query = services::table
        .filter(services::service_id.eq_any(names.to_vec()))
        .select((services::service_id, services::added));
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

/// The names of services after `after`, in order.
fn load_all_names(
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

/// The names of services after `after` that have open batches, in order. All batches of a service may wait without a
/// lane.
fn load_open_names(
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
    connection.load_column(&statement)
}

/// The content of the lanes of a service.
#[derive(Debug, Default)]
struct Queue {
    /// How many batches have ended.
    ended: i64,
    under_way: u64,
    in_doubt: u64,
    held: u64,
    /// How many lanes have a batch.
    lanes: u64,
    /// The error of a batch that could not be sent and is not held.
    failing: Option<String>,
    /// Why a gate keeps back a batch that is not held.
    parked: Option<String>,
    oldest_at: Option<Timestamp>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = lanes)]
struct QueueRow {
    service_id: String,
    ended: i64,
    created_at: Option<i64>,
    submitted: bool,
    dlt_status: Option<String>,
    delays: i32,
    last_error: Option<String>,
    held_at: Option<i64>,
}

impl QueueRow {
    fn has(&self, status: DltStatus) -> bool {
        self.dlt_status.as_deref() == Some(status.as_str())
    }

    /// Why the batch fails. The error of a batch that the ledger has by now no longer matters, and a batch
    /// behind a closed gate has no failed attempt.
    fn failure(&self) -> Option<String> {
        if self.held_at.is_some() || self.has(DltStatus::Pending) || self.has(DltStatus::Valid) {
            return None;
        }
        let has_failed = self.delays > 0 || !self.has(DltStatus::Delayed);
        self.last_error.clone().filter(|_| has_failed)
    }

    /// Why a gate keeps the batch back. A closed gate ends a series of delays.
    fn closed_gate(&self) -> Option<String> {
        let is_parked = self.held_at.is_none() && self.has(DltStatus::Delayed) && self.delays == 0;
        self.last_error.clone().filter(|_| is_parked)
    }
}

fn load_queues(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, Queue>, StoreError> {
    let query =
        lanes::table.filter(lanes::service_id.eq_any(names.to_vec())).select(QueueRow::as_select());
    let rows: Vec<QueueRow> = connection.load_query("lanes_of_services", query)?;
    let mut queues: HashMap<String, Queue> = HashMap::new();
    for row in rows {
        let (failure, closed_gate) = (row.failure(), row.closed_gate());
        let is_in_doubt = row.submitted && row.has(DltStatus::Unknown);
        let queue = queues.entry(row.service_id).or_default();
        queue.ended += row.ended;
        queue.under_way += u64::from(row.submitted);
        queue.in_doubt += u64::from(is_in_doubt);
        queue.held += u64::from(row.held_at.is_some());
        queue.lanes += u64::from(row.created_at.is_some());
        queue.failing = queue.failing.take().or(failure);
        queue.parked = queue.parked.take().or(closed_gate);
        let created_at = row.created_at.map(Timestamp::from_micros);
        queue.oldest_at = queue.oldest_at.into_iter().chain(created_at).min();
    }
    Ok(queues)
}

/// For each service, when the oldest batch that waits without a lane was stored. One row is read for each service.
fn load_oldest_waiting(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, Timestamp>, StoreError> {
    let oldest = waiting_batches::table
        .filter(waiting_batches::service_id.eq(services::service_id))
        .order_by((waiting_batches::service_id, waiting_batches::batch_seq))
        .limit(1)
        .select(waiting_batches::batch_seq)
        .single_value();
    let query = services::table
        .filter(services::service_id.eq_any(names.to_vec()))
        .select((services::service_id, oldest));
    let rows: Vec<(String, Option<i64>)> = connection.load_query("oldest_of_services", query)?;
    let seqs: Vec<i64> = rows.iter().filter_map(|(_, seq)| *seq).collect();
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let query = batches::table
        .filter(batches::seq.eq_any(seqs))
        .select((batches::service_id, batches::created_at));
    let rows: Vec<(String, i64)> = connection.load_query("times_of_oldest", query)?;
    Ok(rows.into_iter().map(|(name, at)| (name, Timestamp::from_micros(at))).collect())
}

/// How many batches of each service are held and wait behind others, among all that operators hold.
pub(super) fn load_waiting_holds(
    connection: &mut Connection,
    names: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    let query = waiting_holds::table
        .inner_join(batches::table)
        .filter(waiting_holds::batch_seq.gt(0))
        .filter(batches::ended_at.is_null())
        .select(batches::service_id);
    let held: Vec<String> = connection.load_query("services_of_waiting_holds", query)?;
    let mut counts = HashMap::new();
    for name in held.into_iter().filter(|name| names.contains(name)) {
        *counts.entry(name).or_insert(0) += 1;
    }
    Ok(counts)
}
