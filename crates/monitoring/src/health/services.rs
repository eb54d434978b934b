use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::BatchResult;
use grid_batch_core::queries::{BatchCounts, QueueCounts, ServiceCounts};
use grid_batch_support::{Job, Jobs, Next, Schedule, TimeShare};

/// How many services are in trouble and how full the queues are, as of the last time that they were read from the
/// store. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct ServiceState(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    /// `None` until they have been counted for the first time.
    counts: Option<ServiceCounts>,
    queues: QueueCounts,
    at: Instant,
    interval: Duration,
}

impl ServiceState {
    const SHORTEST_INTERVAL: Duration = Duration::from_secs(2);
    /// How many times as long as a count the pause after it is.
    const SHARE: u32 = 50;

    pub(crate) fn new() -> Self {
        let (counts, queues) = (None, QueueCounts::default());
        let (at, interval) = (Instant::now(), Self::SHORTEST_INTERVAL);
        Self(Arc::new(Mutex::new(Counted { counts, queues, at, interval })))
    }

    /// The last counts.
    pub(super) fn counts(&self) -> Option<ServiceCounts> {
        self.lock().counts
    }

    /// How full the queues were at the last count.
    pub(super) fn queues(&self) -> QueueCounts {
        self.lock().queues.clone()
    }

    /// The age of the counts, if they are overdue.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let (at, interval) = {
            let counted = self.lock();
            (counted.at, counted.interval)
        };
        let age = at.elapsed();
        (age > interval * 4).then_some(age)
    }

    fn set(&self, counts: ServiceCounts, queues: QueueCounts, interval: Duration) {
        *self.lock() = Counted { counts: Some(counts), queues, at: Instant::now(), interval };
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the job that counts them.
pub(super) fn watch(state: ServiceState, store: Arc<dyn BatchCounts>, jobs: &Jobs) -> Job {
    let schedule = Schedule::every(ServiceState::SHORTEST_INTERVAL).first_after(Duration::ZERO);
    let mut share = TimeShare::new(ServiceState::SHORTEST_INTERVAL, ServiceState::SHARE);
    jobs.repeat("health-services", schedule, move || {
        let started = Instant::now();
        // Other parts report that the database does not answer.
        let Ok((counts, queues)) = read(&*store) else { return Ok(Next::AfterInterval) };
        let pause = share.pause_after(started.elapsed());
        state.set(counts, queues, pause);
        Ok(Next::After(pause))
    })
}

fn read(store: &dyn BatchCounts) -> BatchResult<(ServiceCounts, QueueCounts)> {
    Ok((store.service_counts()?, store.queue_counts()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_counts_are_overdue() {
        let state = ServiceState::new();
        assert_eq!((state.counts(), state.overdue()), (None, None));
        let counts = ServiceCounts { held: 2, ..ServiceCounts::default() };
        state.set(counts, QueueCounts::default(), Duration::from_secs(2));
        assert_eq!((state.counts(), state.overdue()), (Some(counts), None));
        state.lock().at -= Duration::from_secs(9);
        assert!(state.overdue() >= Some(Duration::from_secs(9)));
    }
}
