use std::sync::{Arc, Mutex};

use grid_batch_core::ledger::{Outcome, OutcomeClass};
use grid_batch_support::lock;

/// What a submitter has done since it was built. A stop does not reset it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubmitterStats {
    /// Submissions taken from the queue.
    pub taken: u64,
    /// Submissions that a ledger accepted.
    pub accepted: u64,
    /// Submissions that certainly were not accepted: busy, not sent, parked or refused.
    pub delayed: u64,
    /// Submissions that a ledger rejected.
    pub rejected: u64,
    /// Submissions with an ambiguous outcome: the ledger may have accepted them.
    pub in_doubt: u64,
    /// Attempts to send a batch that a node may have received before, as far as this process knows.
    pub sent_again: u64,
    /// Calls of an observer that failed or panicked.
    pub observer_failures: u64,
    /// Panics of the queue, the resolver, the sender or an observer.
    pub panics: u64,
    /// Outcomes that the group observer did not accept before the shutdown deadline.
    pub undelivered: u64,
}

impl SubmitterStats {
    /// Submissions without an outcome yet.
    pub fn in_flight(&self) -> u64 {
        let ended = self.accepted + self.delayed + self.rejected + self.in_doubt;
        self.taken.saturating_sub(ended)
    }
}

/// The counters of a submitter. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SubmitterCounters(Arc<Mutex<SubmitterStats>>);

impl SubmitterCounters {
    /// The present values.
    pub fn read(&self) -> SubmitterStats {
        *lock(&self.0)
    }

    pub(crate) fn count_taken(&self) {
        lock(&self.0).taken += 1;
    }

    pub(crate) fn count_outcome(&self, outcome: Outcome) {
        let mut stats = lock(&self.0);
        let counter = match outcome.class() {
            OutcomeClass::Accepted => &mut stats.accepted,
            OutcomeClass::NotSent | OutcomeClass::Refused => &mut stats.delayed,
            OutcomeClass::Rejected => &mut stats.rejected,
            OutcomeClass::Ambiguous => &mut stats.in_doubt,
        };
        *counter += 1;
    }

    pub(crate) fn count_sent_again(&self) {
        lock(&self.0).sent_again += 1;
    }

    pub(crate) fn count_observer_failure(&self) {
        lock(&self.0).observer_failures += 1;
    }

    pub(crate) fn count_panic(&self) {
        lock(&self.0).panics += 1;
    }

    pub(crate) fn set_undelivered(&self, count: usize) {
        lock(&self.0).undelivered = u64::try_from(count).unwrap_or(u64::MAX);
    }
}
