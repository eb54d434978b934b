//! The locks of services and lanes, and work that waits for them. The store's own transactions hold them only until
//! their commit.

use std::collections::{BTreeSet, HashSet};

use diesel::QueryableByName;
use grid_batch_core::ServiceId;

use super::{
    BatchKey, key_rows,
    lane::{Lane, Lanes},
};
use crate::sql::{
    Connection, LockedRow, Rows, Statement, Store, StoreError,
    find_locked::{find_locked, find_stuck},
    groups::{LOCK_LIMIT, SPLIT_LOCK_LIMIT},
    result_row,
    rows::{
        DELAY_COLUMNS, DelayRow, PROGRESS_COLUMNS, ProgressRow, ServiceRow, batch_id, service_id,
        service_rows,
    },
};

/// Locks services until the end of the transaction, in the order of their ids.
///
/// Intake takes the same lock. If a batch ends under it, a batch that is added meanwhile is either found as the next
/// head or finds that the service has none. On SQLite, the transaction has locked everything.
pub(crate) fn lock_services<'a>(
    connection: &mut Connection,
    services: impl IntoIterator<Item = &'a ServiceId>,
) -> Result<(), StoreError> {
    let dialect = connection.dialect();
    if !dialect.locks_rows() {
        return Ok(());
    }
    let lock = dialect.locking("for update of v");
    let statement = Statement::new(format!(
        "-- lock_services
         select v.service_id from {{x}} join services v on v.service_id = x.service_id
         order by v.service_id {lock}"
    ))
    .rows(service_rows(services));
    connection.load::<ServiceRow>(&statement).map(drop)
}

/// Locks the lanes that hold these batches until the end of the transaction.
pub(crate) fn lock_lanes(
    connection: &mut Connection,
    batches: &BTreeSet<BatchKey>,
) -> Result<Lanes, StoreError> {
    let services: BTreeSet<&ServiceId> = batches.iter().map(|(service_id, _)| service_id).collect();
    let rows: Vec<LockedLaneRow> = if services.len() == batches.len() {
        lock_found(connection, "-- lock_lanes", "", "s.batch_id = x.batch_id", key_rows(batches))?
    } else {
        let lanes = find_lanes(connection, services, batches)?;
        let rows = Rows::default()
            .text("service_id", lanes.iter().map(|lane| lane.service_id.as_str()))
            .int("lane", lanes.iter().map(|lane| lane.lane))
            .long("batch_seq", lanes.iter().map(|lane| lane.batch_seq));
        let same_lane = " and s.lane = x.lane";
        lock_found(connection, "-- lock_found_lanes", same_lane, "s.batch_seq = x.batch_seq", rows)?
    };
    rows.into_iter()
        .map(|row| {
            let lane = row.into_lane()?;
            Ok((lane.key(), lane))
        })
        .collect()
}

/// Locks all lanes of a service until the end of the transaction, so that no round takes its batches.
pub(crate) fn lock_lanes_of(
    connection: &mut Connection,
    service: &ServiceId,
) -> Result<(), StoreError> {
    let lock = connection.dialect().locking("for update of s");
    let statement = Statement::new(format!(
        "-- lock_lanes_of
         select s.service_id from lanes s where s.service_id = ? order by s.lane {lock}"
    ))
    .text(service.as_str());
    connection.load::<ServiceRow>(&statement).map(drop)
}

/// The lanes that hold these batches, for several batches of a service. The lanes of a service are read only once, not
/// once for each batch.
fn find_lanes(
    connection: &mut Connection,
    services: BTreeSet<&ServiceId>,
    batches: &BTreeSet<BatchKey>,
) -> Result<Vec<FoundLane>, StoreError> {
    let mut found: Vec<FoundLane> = connection.load_rows(
        "-- find_lanes
         select s.service_id, s.lane, s.batch_seq, s.batch_id
         from {x} join lanes s on s.service_id = x.service_id
         where s.busy",
        service_rows(services),
    )?;
    let keys: HashSet<(&str, &[u8])> =
        batches.iter().map(|(service, id)| (service.as_str(), id.as_bytes())).collect();
    found.retain(|lane| keys.contains(&(lane.service_id.as_str(), lane.batch_id.as_slice())));
    Ok(found)
}

/// Locks the lanes of the services in these rows that meet two further conditions.
fn lock_found(
    connection: &mut Connection,
    name: &str,
    same_lane: &str,
    same_batch: &str,
    rows: Rows<'_>,
) -> Result<Vec<LockedLaneRow>, StoreError> {
    let lock = connection.dialect().locking("for update of s");
    connection.load_rows(
        format!(
            "{name}
             select s.service_id, s.lane, s.epoch, s.batch_seq, s.batch_id, s.position, s.blocker_seq, s.by_pool,
                 {PROGRESS_COLUMNS}, {DELAY_COLUMNS}
             from {{x}} join lanes s on s.service_id = x.service_id{same_lane}
             where {same_batch}
             order by s.service_id, s.lane {lock}"
        ),
        rows,
    )
}

result_row! {
    /// A lane with its batch.
    struct FoundLane {
        service_id: String,
        lane: i32,
        batch_seq: i64,
        batch_id: Vec<u8>,
    }
}

result_row! {
    struct LockedLaneRow {
        service_id: String,
        lane: i32,
        epoch: i64,
        batch_seq: i64,
        batch_id: Vec<u8>,
        position: Option<i64>,
        blocker_seq: Option<i64>,
        by_pool: bool,
        #[diesel(embed)]
        progress: ProgressRow,
        #[diesel(embed)]
        delay: DelayRow,
    }
}

impl LockedLaneRow {
    fn into_lane(self) -> Result<Lane, StoreError> {
        Ok(Lane {
            progress: self.progress.progress()?,
            batch_id: batch_id(&self.batch_id)?,
            epoch: u64::try_from(self.epoch).map_err(StoreError::corrupt)?,
            service_id: service_id(&self.service_id)?,
            lane: self.lane,
            batch_seq: self.batch_seq,
            position: self.position,
            blocker_seq: self.blocker_seq,
            by_pool: self.by_pool,
            submitted_at: self.progress.submitted_at,
            since: self.progress.since,
            checked_at: self.progress.checked_at,
            next_try_at: self.progress.next_try_at,
            delay: self.delay,
            last_error: self.progress.last_error,
            held: self.progress.held.into_held(),
            changed: false,
        })
    }
}

/// How often to wait for services that are only busy.
const MOST_WAITS: usize = 3;

/// Does `work` in a transaction that has locked those of these services that no other transaction keeps locked for
/// long. `work` gets the locked services. If one of them turns out to have another locked row, the work is repeated
/// without it.
pub(crate) fn with_locked<T>(
    store: &Store,
    services: &BTreeSet<ServiceId>,
    mut work: impl FnMut(&mut Connection, &BTreeSet<ServiceId>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut free = without_stuck(store, services)?;
    let mut waits = 0;
    loop {
        let mut are_locked = false;
        let mut connection = store.pools.write()?;
        let result = connection.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            lock_services(connection, &free)?;
            are_locked = true;
            work(connection, &free)
        });
        drop(connection);
        let is_locked = matches!(result, Err(StoreError::Locked { .. }));
        if !is_locked || !store.dialect().locks_rows() || free.is_empty() {
            let looks_free = |service: &&ServiceId| store.locked.looks_free(service, store.clock());
            store.locked.found_free(free.iter().filter(looks_free).filter(|_| result.is_ok()));
            return result;
        }
        let stuck = find_stuck(store, &find_now(store, &free)?)?;
        waits += 1;
        if stuck.is_empty() && (are_locked || waits == MOST_WAITS) {
            // The locked row is not that of a service or lane, or the database is very slow.
            store.locked.found_locked(free.iter().cloned(), LockedRow::Other, store.clock());
            free.clear();
        }
        free.retain(|service| !stuck.contains(service));
    }
}

/// Removes those of these services that are on the list of locked ones and are still locked.
fn without_stuck(
    store: &Store,
    services: &BTreeSet<ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let known: BTreeSet<ServiceId> =
        services.iter().filter(|service| store.locked.contains(service)).cloned().collect();
    if known.is_empty() {
        return Ok(services.clone());
    }
    let stuck = find_stuck(store, &find_now(store, &known)?)?;
    Ok(services.difference(&stuck).cloned().collect())
}

/// The services that are locked at this moment.
fn find_now(
    store: &Store,
    services: &BTreeSet<ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut connection = store.pools.write()?;
    connection.transaction_with_lock_limit(SPLIT_LOCK_LIMIT, |connection| {
        find_locked(connection, services)
    })
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use grid_batch_core::SystemClock;

    use super::*;
    use crate::StoreOptions;

    #[test]
    fn work_on_free_services_ends_while_another_one_is_locked() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", directory.path().join("batches.db").display());
        let store = Store::open(&url.parse().unwrap(), StoreOptions::default()).unwrap();
        let [locked, free]: [ServiceId; 2] = ["a", "b"].map(|name| name.parse().unwrap());
        store.locked.found_locked([locked.clone()], LockedRow::Other, &SystemClock);
        let done = with_locked(&store, &BTreeSet::from([free.clone()]), |_, free| Ok(free.clone()));
        assert_eq!(done.unwrap(), BTreeSet::from([free]));
        assert!(store.locked.contains(&locked));
    }
}
