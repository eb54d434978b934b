use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::InternalError;
use grid_batch_store::{ServiceCounts, Store};

use super::watcher::Watcher;

/// How many services are in trouble, as the store was read last. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct ServiceState(Arc<Mutex<Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    /// `None` before they were counted for the first time.
    counts: Option<ServiceCounts>,
    at: Instant,
    interval: Duration,
}

impl ServiceState {
    const SHORTEST_INTERVAL: Duration = Duration::from_secs(2);
    /// Counting takes at most this part of the time.
    const SHARE: u32 = 50;

    pub(super) fn new() -> Self {
        let (counts, at, interval) = (None, Instant::now(), Self::SHORTEST_INTERVAL);
        Self(Arc::new(Mutex::new(Counted { counts, at, interval })))
    }

    /// The last counts.
    pub(super) fn counts(&self) -> Option<ServiceCounts> {
        self.lock().counts
    }

    /// How old the counts are, if they should have been read again long ago.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let Counted { at, interval, .. } = *self.lock();
        let age = at.elapsed();
        (age > interval * 4).then_some(age)
    }

    fn set(&self, counts: ServiceCounts, interval: Duration) {
        *self.lock() = Counted { counts: Some(counts), at: Instant::now(), interval };
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that counts them.
pub(super) fn watch(state: ServiceState, store: &Store) -> Result<Watcher, InternalError> {
    let store = store.clone();
    Watcher::start("health-services", move || {
        let started = Instant::now();
        let counts = store.service_counts();
        let pause = (started.elapsed() * ServiceState::SHARE).max(ServiceState::SHORTEST_INTERVAL);
        // Other parts report that the database does not answer.
        if let Ok(counts) = counts {
            state.set(counts, pause);
        }
        pause
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_counts_are_overdue() {
        let state = ServiceState::new();
        assert_eq!((state.counts(), state.overdue()), (None, None));
        let counts = ServiceCounts { held: 2, ..ServiceCounts::default() };
        state.set(counts, Duration::from_secs(2));
        assert_eq!((state.counts(), state.overdue()), (Some(counts), None));
        state.lock().at -= Duration::from_secs(9);
        assert!(state.overdue() >= Some(Duration::from_secs(9)));
    }
}
