//! Work on services that waits for their locks, which our own transactions only keep for a commit.

use std::collections::BTreeSet;

use grid_batch_core::ServiceId;

use super::lock_services;
use crate::sql::{
    Connection, LockedRow, Store, StoreError,
    find_locked::{find_locked, find_stuck},
    groups::{LOCK_LIMIT, SPLIT_LOCK_LIMIT},
};

/// How often services that are only busy are waited for.
const MOST_WAITS: usize = 3;

/// Does `work` in a transaction that has locked those of these services that no other transaction keeps
/// locked for long. `work` gets them, and is done again without a service that turns out to have another
/// locked row.
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
            // Not the services or their lanes, or the database is that slow.
            store.locked.found_locked(free.iter().cloned(), LockedRow::Other, store.clock());
            free.clear();
        }
        free.retain(|service| !stuck.contains(service));
    }
}

/// These services without those on the list of locked ones that are still locked.
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
