use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use grid_batch_core::Outcome;

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
pub struct SubmitterCounters(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    taken: AtomicU64,
    accepted: AtomicU64,
    delayed: AtomicU64,
    rejected: AtomicU64,
    in_doubt: AtomicU64,
    sent_again: AtomicU64,
    observer_failures: AtomicU64,
    panics: AtomicU64,
    undelivered: AtomicU64,
}

impl SubmitterCounters {
    /// The present values.
    pub fn read(&self) -> SubmitterStats {
        let Counters {
            taken,
            accepted,
            delayed,
            rejected,
            in_doubt,
            sent_again,
            observer_failures,
            panics,
            undelivered,
        } = &*self.0;
        // `taken` is read last, so that it is never less than the sum of the outcomes.
        SubmitterStats {
            accepted: accepted.load(Relaxed),
            delayed: delayed.load(Relaxed),
            rejected: rejected.load(Relaxed),
            in_doubt: in_doubt.load(Relaxed),
            sent_again: sent_again.load(Relaxed),
            observer_failures: observer_failures.load(Relaxed),
            panics: panics.load(Relaxed),
            undelivered: undelivered.load(Relaxed),
            taken: taken.load(Relaxed),
        }
    }

    pub(crate) fn count_taken(&self) {
        self.0.taken.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_outcome(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Accepted | Outcome::Committed => &self.0.accepted,
            Outcome::Busy
            | Outcome::NotSent
            | Outcome::Parked
            | Outcome::PoolParked
            | Outcome::Refused
            | Outcome::RefusedBatch
            | Outcome::NotProvedNew => &self.0.delayed,
            Outcome::Rejected => &self.0.rejected,
            Outcome::Ambiguous => &self.0.in_doubt,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_sent_again(&self) {
        self.0.sent_again.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_observer_failure(&self) {
        self.0.observer_failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_panic(&self) {
        self.0.panics.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_undelivered(&self, count: usize) {
        self.0.undelivered.store(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
    }
}
