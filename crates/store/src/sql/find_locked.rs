//! Which services other transactions keep locked.

use std::collections::{BTreeMap, BTreeSet};

use grid_batch_core::ServiceId;

use super::{
    Connection, LockedRow, Statement, Store, StoreError,
    groups::SPLIT_LOCK_LIMIT,
    rows::{service_id, service_rows},
};

/// The maximum number of services to wait for one after the other. If this many stay locked, the others are assumed to
/// be locked as well.
const MOST_TIMEOUTS: usize = 8;

/// Locks the free ones of these services and their lanes until the end of the transaction, and returns
/// the others.
pub(crate) fn find_locked(
    connection: &mut Connection,
    services: &BTreeSet<ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let lock = connection.dialect().locking("for update of v, s skip locked");
    let lock_free = Statement::new(format!(
        "-- lock_free_services
         select v.service_id, cast(1 as bigint) as lanes from {{x}}
         join services v on v.service_id = x.service_id
         join lanes s on s.service_id = v.service_id
         order by v.service_id {lock}"
    ));
    let find = Statement::new(
        "-- find_services
         select v.service_id,
             (select count(*) from lanes s where s.service_id = v.service_id) as lanes
         from {x} join services v on v.service_id = x.service_id",
    );
    let mut read = |statement: Statement<'_>| {
        let rows: Vec<(String, i64)> =
            connection.load_tuples(&statement.rows(service_rows(services)))?;
        let mut lanes: BTreeMap<String, i64> = BTreeMap::new();
        for (service, count) in rows {
            *lanes.entry(service).or_default() += count;
        }
        Ok::<_, StoreError>(lanes)
    };
    let free = read(lock_free)?;
    // A service is free if none of its lanes is locked.
    let stored = read(find)?;
    let locked = stored.iter().filter(|(service, lanes)| free.get(*service) != Some(*lanes));
    locked.map(|(service, _)| service_id(service)).collect()
}

/// Those of these services whose lock outlasts a short wait; the others were only busy. They are added to the list of
/// locked services.
///
/// The store's own transactions lock a busy service for most of the time, so a single attempt proves nothing. Services
/// that are known to be locked are not waited for each time.
pub(crate) fn find_stuck(
    store: &Store,
    look_locked: &BTreeSet<ServiceId>,
) -> Result<BTreeSet<ServiceId>, StoreError> {
    let mut to_wait_for = store.locked.to_wait_for(look_locked, store.clock());
    let mut stuck: BTreeSet<ServiceId> = look_locked.difference(&to_wait_for).cloned().collect();
    let mut timeouts = 0;
    while let Some(service) = to_wait_for.pop_first() {
        if timeouts == MOST_TIMEOUTS || !can_lock(store, &service)? {
            timeouts = (timeouts + 1).min(MOST_TIMEOUTS);
            stuck.insert(service);
        }
    }
    store.locked.found_locked(stuck.iter().cloned(), LockedRow::ServiceOrLane, store.clock());
    Ok(stuck)
}

/// Whether a service and its lanes can be locked within a short time.
fn can_lock(store: &Store, service: &ServiceId) -> Result<bool, StoreError> {
    let mut connection = store.pools.write()?;
    let lock = connection.dialect().locking("for update of v, s");
    let statement = Statement::new(format!(
        "-- lock_service_and_lanes
         select v.service_id, cast(1 as bigint) as lanes
         from services v join lanes s on s.service_id = v.service_id
         where v.service_id = ? order by s.service_id, s.lane {lock}"
    ))
    .text(service.as_str());
    let locked = connection.transaction_with_lock_limit(SPLIT_LOCK_LIMIT, |connection| {
        connection.load_tuples::<(String, i64)>(&statement).map(drop)
    });
    match locked {
        Ok(()) => Ok(true),
        Err(StoreError::Locked { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes services that are free again from the list of locked ones, so that they do not stay on it until the next
/// change.
pub(crate) fn forget_unlocked(store: &Store) -> Result<(), StoreError> {
    let services: BTreeSet<ServiceId> =
        store.locked.list().into_iter().map(|locked| locked.service_id).collect();
    if services.is_empty() {
        return Ok(());
    }
    let locked =
        store.pools.write()?.transaction_with_lock_limit(SPLIT_LOCK_LIMIT, |connection| {
            find_locked(connection, &services)
        })?;
    let looks_free = |service: &&ServiceId| store.locked.looks_free(service, store.clock());
    let free: Vec<&ServiceId> = services.difference(&locked).filter(looks_free).collect();
    store.locked.found_free(free);
    Ok(())
}
