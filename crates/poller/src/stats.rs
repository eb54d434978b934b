use std::sync::{Arc, Mutex, PoisonError};

use grid_batch_core::BatchResult;

use crate::panics::Panic;

/// What a polling monitor has done since it was built; stopping and starting again do not reset it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonitorStats {
    /// Questions for the statuses of batches of one service.
    pub asked: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Those that failed, or whose answer could not be used.
    pub failed: u64,
    /// Statuses that were written.
    pub written: u64,
    /// Batches that an answer did not say anything of.
    pub unknown: u64,
    /// How often evidence was looked for.
    pub evidence_asked: u64,
    /// How often looking for it failed.
    pub evidence_failed: u64,
    /// Batches that were proved committed.
    pub committed: u64,
    /// Batches that were believed absent, to be tried again.
    pub absent: u64,
    /// Batches that were held for a person to decide.
    pub held: u64,
    /// How often the store failed or panicked.
    pub store_failures: u64,
    /// Answers and resolutions that the store refused for good, one at a time.
    pub refused: u64,
    /// Panics of a store, a reader, or a function of the options.
    pub panics: u64,
}

impl MonitorStats {
    /// Questions that have no answer yet.
    pub fn under_way(&self) -> u64 {
        self.asked.saturating_sub(self.answered + self.failed)
    }
}

/// Reads the numbers of a polling monitor from anywhere. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct MonitorCounters(Arc<Mutex<MonitorStats>>);

impl MonitorCounters {
    /// The numbers as they are now.
    pub fn read(&self) -> MonitorStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what panicked, and goes on as after an error.
    pub(crate) fn survive<T>(&self, caught: Result<BatchResult<T>, Panic>) -> BatchResult<T> {
        caught.unwrap_or_else(|panic| {
            self.count(|stats| stats.panics += 1);
            Err(panic.into())
        })
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut MonitorStats)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

pub(crate) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
