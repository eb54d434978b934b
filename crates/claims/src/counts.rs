use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use grid_batch_core::{BatchState, Change, Event};

/// How often each kind of change was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Attempts after which the ledger certainly does not have the batch; it was delayed.
    pub delayed: u64,
    /// Attempts after which the ledger may have the batch.
    pub in_doubt: u64,
    /// Batches that the ledger was proved not to have; they are submitted again.
    pub absent: u64,
    /// Batches held for an operator.
    pub held: u64,
    /// Batches that ended as committed.
    pub committed: u64,
    /// Batches that ended as invalid.
    pub invalid: u64,
    /// Batches that ended as invalid and were reported as committed later.
    pub committed_after_invalid: u64,
    /// Changes that the store refused, because another instance or an operator was first.
    pub stale: u64,
}

/// Counts recorded changes, from any thread.
#[derive(Debug, Default)]
pub(crate) struct ChangeCounters {
    delayed: AtomicU64,
    in_doubt: AtomicU64,
    absent: AtomicU64,
    held: AtomicU64,
    committed: AtomicU64,
    invalid: AtomicU64,
    committed_after_invalid: AtomicU64,
    stale: AtomicU64,
}

impl ChangeCounters {
    /// Counts a change that brought its batch to this state.
    pub(crate) fn count(&self, change: &Change, state: BatchState) {
        if change.hold.is_some() {
            self.held.fetch_add(1, Relaxed);
        }
        let counter = match (state, change.event) {
            (BatchState::Delayed, _) => &self.delayed,
            (BatchState::InDoubt, Event::Outcome { .. } | Event::OwnerLost { .. }) => {
                &self.in_doubt
            }
            (BatchState::Absent, _) => &self.absent,
            (BatchState::Committed, _) => &self.committed,
            (BatchState::Invalid, _) => &self.invalid,
            _ => return,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts batches that ended as invalid without a change of their own.
    pub(crate) fn count_invalid(&self, batches: u64) {
        self.invalid.fetch_add(batches, Relaxed);
    }

    pub(crate) fn count_commit_after_invalid(&self) {
        self.committed_after_invalid.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_stale(&self) {
        self.stale.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> ChangeCounts {
        ChangeCounts {
            delayed: self.delayed.load(Relaxed),
            in_doubt: self.in_doubt.load(Relaxed),
            absent: self.absent.load(Relaxed),
            held: self.held.load(Relaxed),
            committed: self.committed.load(Relaxed),
            invalid: self.invalid.load(Relaxed),
            committed_after_invalid: self.committed_after_invalid.load(Relaxed),
            stale: self.stale.load(Relaxed),
        }
    }
}
