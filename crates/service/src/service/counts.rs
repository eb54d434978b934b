use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use grid_batch_core::{BatchState, Event};
use grid_batch_submitter::SubmitterCounters;

/// What became of batches since the service was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Batches handed to a submitter, each time counted.
    pub submitted: u64,
    /// How often a batch was sent that had been sent before.
    pub sent_again: u64,
    /// Batches that were certainly not taken, and wait to be sent again.
    pub delayed: u64,
    /// Batches of which nobody knew whether the ledger has them.
    pub in_doubt: u64,
    /// Batches that the ledger was proved not to have, and are sent again.
    pub absent: u64,
    /// Batches held for a person.
    pub held: u64,
    /// Batches that ended as committed.
    pub committed: u64,
    /// Batches that ended as invalid.
    pub invalid: u64,
}

/// Counts while others read.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    delayed: AtomicU64,
    in_doubt: AtomicU64,
    absent: AtomicU64,
    held: AtomicU64,
    committed: AtomicU64,
    invalid: AtomicU64,
}

impl Counters {
    /// A batch has come to this state by this event.
    pub(super) fn count(&self, event: Event, state: BatchState, is_hold: bool) {
        let numbers = &*self.0;
        let add = |number: &AtomicU64| {
            number.fetch_add(1, Relaxed);
        };
        if is_hold {
            add(&numbers.held);
        }
        match (state, event) {
            (BatchState::Delayed, _) => add(&numbers.delayed),
            (BatchState::InDoubt, Event::Outcome { .. } | Event::OwnerLost { .. }) => {
                add(&numbers.in_doubt);
            }
            (BatchState::Absent, _) => add(&numbers.absent),
            (BatchState::Committed, _) => add(&numbers.committed),
            (BatchState::Invalid, _) => add(&numbers.invalid),
            _ => {}
        }
    }

    /// The counts, with those of the submitter.
    pub(super) fn read(&self, submitter: &SubmitterCounters) -> ServiceCounts {
        let Numbers { delayed, in_doubt, absent, held, committed, invalid } = &*self.0;
        let read = |number: &AtomicU64| number.load(Relaxed);
        let sent = submitter.read();
        ServiceCounts {
            submitted: sent.taken,
            sent_again: sent.sent_again,
            delayed: read(delayed),
            in_doubt: read(in_doubt),
            absent: read(absent),
            held: read(held),
            committed: read(committed),
            invalid: read(invalid),
        }
    }
}
