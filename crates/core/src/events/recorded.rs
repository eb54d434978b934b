use crate::batches::{BatchState, Change, ChangeOutcome};
use crate::claims::{SubmittedBatch, Takeover};
use crate::{ItemId, ServiceId};

/// An entry of the stream: something that this instance has recorded, after the commit, or learned of.
///
/// Losing an entry costs time and never correctness: subscribers that act on entries also read the store periodically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<'a> {
    /// A change of a batch.
    Change {
        /// The change.
        change: &'a Change,
        /// The state of the batch now.
        state: BatchState,
        /// Whether the service has a batch that can be submitted now.
        next_waits: bool,
    },
    /// A change was not applied: it came too late or is not possible.
    NotApplied {
        /// The change.
        change: &'a Change,
        /// Why.
        outcome: ChangeOutcome,
    },
    /// This instance has stored batches of these services, or an operator has acted on them through it.
    Stored(&'a [ServiceId]),
    /// Batches of these services may be submitted now: another instance has stored them, or a transaction that they
    /// depend on was found.
    Submittable(&'a [ServiceId]),
    /// Batches of these services were freed, because their blockers have ended.
    Freed(&'a [ServiceId]),
    /// The server has ended its own pause of these services.
    Resumed(&'a [ServiceId]),
    /// This instance has taken services. They may have batches under way, about which this instance has received
    /// no entries.
    TakenOver(&'a Takeover),
    /// These batches were put in doubt, because no submitter has them.
    Recovered(&'a [SubmittedBatch]),
    /// These batches ended in these states while they waited: as invalid, because of another batch or an operator, or
    /// as committed, because they were sent before their turns.
    EndedWaiting(&'a [(ItemId, BatchState)]),
    /// Another instance has recorded the end of these batches.
    EndedElsewhere(&'a [ItemId]),
}

impl<'a> Recorded<'a> {
    /// A change that was recorded with this outcome.
    pub const fn new(change: &'a Change, outcome: ChangeOutcome) -> Self {
        match outcome {
            ChangeOutcome::Applied { state, next_waits } => {
                Self::Change { change, state, next_waits }
            }
            ChangeOutcome::Stale(_) | ChangeOutcome::NotFound => {
                Self::NotApplied { change, outcome }
            }
        }
    }

    /// The batch that this change has ended, and its state.
    pub fn ended(self) -> Option<(&'a ItemId, BatchState)> {
        match self {
            Self::Change { change, state, .. } if state.is_terminal() => {
                Some((&change.batch_id, state))
            }
            _ => None,
        }
    }
}

/// Called with each entry of the stream. Writers of changes call it after each commit.
///
/// It must return quickly, because the writer waits for it.
pub trait RecordedSubscriber: Send + Sync {
    /// Handles an entry.
    fn recorded(&self, entry: Recorded<'_>);
}

impl<F: Fn(Recorded<'_>) + Send + Sync> RecordedSubscriber for F {
    fn recorded(&self, entry: Recorded<'_>) {
        self(entry);
    }
}

/// An optional subscriber: `None` ignores every entry.
impl<T: RecordedSubscriber> RecordedSubscriber for Option<T> {
    fn recorded(&self, entry: Recorded<'_>) {
        if let Some(subscriber) = self {
            subscriber.recorded(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::{Event, LedgerStatus, Stale};

    #[test]
    fn only_applied_changes_to_a_final_state_end_a_batch() {
        let batch_id = ItemId::from_bytes([1; 64]);
        let event = Event::status(LedgerStatus::Committed);
        let change = Change::new("circuit::service".parse().unwrap(), batch_id, event);
        let ended = |outcome| Recorded::new(&change, outcome).ended();
        let applied = |state| ChangeOutcome::Applied { state, next_waits: false };
        for state in [BatchState::Committed, BatchState::Invalid] {
            assert_eq!(ended(applied(state)), Some((&batch_id, state)));
        }
        for outcome in [
            applied(BatchState::Pending),
            ChangeOutcome::NotFound,
            ChangeOutcome::Stale(Stale::CommittedAfterInvalid),
        ] {
            assert_eq!(ended(outcome), None, "{outcome:?}");
        }
    }
}
