use std::sync::{Arc, Mutex, PoisonError};

use grid_batch_core::BatchResult;
use grid_batch_support::Panic;

/// What a polling monitor has done since it was built. A stop does not reset it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonitorStats {
    /// Requests for the statuses of batches of one service.
    pub requests: u64,
    /// Status requests with a valid answer.
    pub answered: u64,
    /// Status requests that failed or had an invalid answer.
    pub failed: u64,
    /// Statuses written to the store.
    pub written: u64,
    /// Batches of valid answers without a reported status.
    pub not_reported: u64,
    /// Batches for which evidence was requested.
    pub evidence_requests: u64,
    /// Those of them whose request failed.
    pub evidence_failures: u64,
    /// Batches that evidence proved committed.
    pub committed: u64,
    /// Batches that evidence proved absent or lost, to be submitted again.
    pub absent: u64,
    /// Batches that ended as invalid because the ledger can never apply them.
    pub never_applicable: u64,
    /// Batches that were held for an operator.
    pub held: u64,
    /// Services with a batch that has been under way for much longer than usual.
    pub stalled_services: u64,
    /// Calls of the store that failed or panicked.
    pub store_failures: u64,
    /// Groups of statuses and single resolutions that the store refused.
    pub refused: u64,
    /// Panics of the store, a reader or the inconclusive policy.
    pub panics: u64,
}

impl MonitorStats {
    /// Status requests that have not ended.
    pub fn in_flight(&self) -> u64 {
        self.requests.saturating_sub(self.answered + self.failed)
    }
}

/// The counters of a polling monitor. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MonitorCounters(Arc<Mutex<MonitorStats>>);

impl MonitorCounters {
    /// The present values.
    pub fn read(&self) -> MonitorStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a caught panic and turns it into an error.
    pub(crate) fn count_panic<T>(&self, caught: Result<BatchResult<T>, Panic>) -> BatchResult<T> {
        caught.unwrap_or_else(|panic| {
            self.count(|stats| stats.panics += 1);
            Err(panic.into())
        })
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut MonitorStats)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

pub(crate) fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
