use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use grid_batch_core::{Clock, MonotonicTime, ServiceId, Timestamp};
use grid_batch_support::lock;
use log::{info, warn};

/// A service with a row that another transaction keeps locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedService {
    /// The service.
    pub service_id: ServiceId,
    /// When this process first could not lock it.
    pub since: Timestamp,
}

/// The services that this process could not lock lately. Groups of changes leave them out until they
/// are free, so that only the first group waits for them.
#[derive(Debug, Default)]
pub(crate) struct LockedServices {
    services: Mutex<BTreeMap<ServiceId, Lock>>,
    /// When a change last waited for one of them again.
    last_wait: Mutex<Option<MonotonicTime>>,
}

/// How a lock was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockedRow {
    /// The row of the service, or its lane: [`find_locked`](super::find_locked::find_locked) sees it.
    ServiceOrLane,
    /// Another row, such as that of a batch. Only a try shows that it is free.
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Lock {
    row: LockedRow,
    since: Timestamp,
    last_found: MonotonicTime,
    /// When it was last waited for.
    last_wait: MonotonicTime,
}

impl LockedServices {
    /// A service that was not tried for longer than this is assumed to be free.
    const FORGET_AFTER: Duration = Duration::from_secs(60);
    /// The pause before one of them is waited for again.
    const WAIT_PAUSE: Duration = Duration::from_secs(1);

    pub(crate) fn contains(&self, service: &ServiceId) -> bool {
        lock(&self.services).contains_key(service)
    }

    pub(crate) fn since(&self, service: &ServiceId) -> Option<Timestamp> {
        lock(&self.services).get(service).map(|lock| lock.since)
    }

    /// All locked services, ordered by their ids.
    pub(crate) fn list(&self) -> Vec<LockedService> {
        let listed = |(service_id, lock): (&ServiceId, &Lock)| LockedService {
            service_id: service_id.clone(),
            since: lock.since,
        };
        lock(&self.services).iter().map(listed).collect()
    }

    /// Records that these services could not be locked. Logs a warning about those that are new.
    pub(crate) fn found_locked(
        &self,
        services: impl IntoIterator<Item = ServiceId>,
        row: LockedRow,
        clock: &dyn Clock,
    ) {
        let (since, last_found) = (clock.now(), clock.monotonic());
        let services: Vec<_> = services.into_iter().collect();
        let mut locked = lock(&self.services);
        let mut new = Vec::new();
        for service in services {
            let known = locked.get(&service);
            if known.is_none() {
                new.push(service.clone());
            }
            let since = known.map_or(since, |known| known.since);
            let last_wait = known.map_or(last_found, |known| known.last_wait);
            locked.insert(service, Lock { row, since, last_found, last_wait });
        }
        if let Some(first) = new.first() {
            warn!(service:% = first, services = new.len();
                "a row of the service is locked by another transaction; its batches wait, and are \
                 tried again until the lock ends");
        }
    }

    /// Records that these services are no longer locked.
    pub(crate) fn found_free<'s>(&self, services: impl IntoIterator<Item = &'s ServiceId>) {
        if lock(&self.services).is_empty() {
            return;
        }
        // The iterator may also use this list, so it is exhausted before the list is locked.
        let mut free: Vec<_> = services.into_iter().collect();
        let mut locked = lock(&self.services);
        free.retain(|service| locked.remove(*service).is_some());
        if let Some(first) = free.first() {
            info!(service:% = first, services = free.len(); "the service is not locked any more");
        }
    }

    /// Whether a service counts as free if its own row and lanes are not locked.
    pub(crate) fn looks_free(&self, service: &ServiceId, clock: &dyn Clock) -> bool {
        lock(&self.services).get(service).is_none_or(|lock| {
            lock.row == LockedRow::ServiceOrLane
                || clock.monotonic().since(lock.last_found) > Self::FORGET_AFTER
        })
    }

    /// Which of these services, which look locked, are worth a short wait: those that are not on the list and, from
    /// time to time, one that is.
    pub(crate) fn to_wait_for(
        &self,
        look_locked: &BTreeSet<ServiceId>,
        clock: &dyn Clock,
    ) -> BTreeSet<ServiceId> {
        let mut locked = lock(&self.services);
        let is_new = |service: &&ServiceId| !locked.contains_key(*service);
        let mut to_wait_for: BTreeSet<ServiceId> =
            look_locked.iter().filter(is_new).cloned().collect();
        let known = locked.iter_mut().filter(|(service, _)| look_locked.contains(*service));
        let longest_ago = known.min_by_key(|(_, lock)| lock.last_wait);
        let now = clock.monotonic();
        if let Some((service, lock)) = longest_ago
            && self.may_wait(now)
        {
            lock.last_wait = now;
            to_wait_for.insert(service.clone());
        }
        to_wait_for
    }

    fn may_wait(&self, now: MonotonicTime) -> bool {
        let mut last = lock(&self.last_wait);
        let may_wait = last.is_none_or(|last| now.since(last) >= Self::WAIT_PAUSE);
        if may_wait {
            *last = Some(now);
        }
        may_wait
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    #[test]
    fn service_is_locked_since_it_was_first_found() {
        let clock = ManualClock::at(Timestamp::from_micros(5));
        let locked = LockedServices::default();
        locked.found_locked([service("a"), service("b")], LockedRow::ServiceOrLane, &clock);
        clock.advance(Duration::from_secs(1));
        locked.found_locked([service("a")], LockedRow::Other, &clock);
        locked.found_free([&service("b"), &service("c")]);
        let since = Timestamp::from_micros(5);
        assert_eq!(locked.list(), [LockedService { service_id: service("a"), since }]);
        assert!(locked.contains(&service("a")) && !locked.contains(&service("b")));
    }

    #[test]
    fn known_locks_are_waited_for_one_at_a_time() {
        let clock = ManualClock::at(Timestamp::from_micros(5));
        let locked = LockedServices::default();
        let all = BTreeSet::from([service("a"), service("b"), service("c")]);
        assert_eq!(locked.to_wait_for(&all, &clock), all);
        locked.found_locked([service("a"), service("b")], LockedRow::ServiceOrLane, &clock);
        let waited = |pause: u64| {
            clock.advance(Duration::from_millis(pause));
            Vec::from_iter(locked.to_wait_for(&all, &clock))
        };
        let [a, b, c] = ["a", "b", "c"].map(service);
        assert_eq!(waited(1_000), [a.clone(), c.clone()]);
        assert_eq!(waited(999), vec![c.clone()]);
        assert_eq!(waited(1), [b, c.clone()]);
        assert_eq!(waited(1_000), [a, c]);
    }

    #[test]
    fn lock_of_another_row_is_forgotten_after_a_while() {
        let clock = ManualClock::at(Timestamp::from_micros(5));
        let locked = LockedServices::default();
        locked.found_locked([service("a")], LockedRow::ServiceOrLane, &clock);
        locked.found_locked([service("b")], LockedRow::Other, &clock);
        assert!(locked.looks_free(&service("a"), &clock));
        assert!(!locked.looks_free(&service("b"), &clock));
        clock.advance(Duration::from_secs(61));
        assert!(locked.looks_free(&service("b"), &clock));
    }
}
