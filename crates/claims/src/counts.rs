use std::sync::{Arc, Mutex};

use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Stale};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::lock;

/// How often each kind of change was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Attempts after which the ledger certainly does not have the batch; it was delayed.
    pub delayed: u64,
    /// Attempts after which the ledger may have the batch.
    pub in_doubt: u64,
    /// Batches that are proved to be absent from the ledger; they are submitted again.
    pub absent: u64,
    /// Batches held for an operator.
    pub held: u64,
    /// Batches that ended as committed.
    pub committed: u64,
    /// Batches that ended as invalid.
    pub invalid: u64,
    /// Batches that ended as invalid and were reported as committed later.
    pub committed_after_invalid: u64,
    /// Changes that the store refused because another instance or an operator came first.
    pub stale: u64,
}

/// Counts recorded changes. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct ChangeCounters(Arc<Mutex<ChangeCounts>>);

impl ChangeCounters {
    /// The present counts.
    pub fn read(&self) -> ChangeCounts {
        *lock(&self.0)
    }
}

impl RecordedSubscriber for ChangeCounters {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, .. } => lock(&self.0).count(change, state),
            Recorded::NotApplied {
                outcome: ChangeOutcome::Stale(Stale::CommittedAfterInvalid),
                ..
            } => lock(&self.0).committed_after_invalid += 1,
            Recorded::NotApplied { .. } => lock(&self.0).stale += 1,
            Recorded::EndedWaiting(ended) => {
                let mut counts = lock(&self.0);
                ended.iter().for_each(|(_, state)| counts.count_end(*state));
            }
            _ => {}
        }
    }
}

impl ChangeCounts {
    /// Counts a change that brought its batch to this state.
    fn count(&mut self, change: &Change, state: BatchState) {
        self.held += u64::from(change.hold.is_some());
        match state {
            BatchState::Delayed => self.delayed += 1,
            BatchState::InDoubt if change.event.ends_submission() => self.in_doubt += 1,
            BatchState::Absent => self.absent += 1,
            state => self.count_end(state),
        }
    }

    fn count_end(&mut self, state: BatchState) {
        match state {
            BatchState::Committed => self.committed += 1,
            BatchState::Invalid => self.invalid += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::{Event, LedgerStatus};
    use grid_batch_core::evidence::Evidence;
    use grid_batch_core::ledger::Outcome;

    use super::*;

    fn change(event: Event) -> Change {
        Change::new("circuit::service".parse().unwrap(), ItemId::from_bytes([1; 64]), event)
    }

    /// The counts after this change.
    fn counts(change: &Change, outcome: ChangeOutcome) -> ChangeCounts {
        let counters = ChangeCounters::default();
        counters.recorded(Recorded::new(change, outcome));
        counters.read()
    }

    fn applied(state: BatchState) -> ChangeOutcome {
        ChangeOutcome::Applied { state, next_waits: false }
    }

    #[test]
    fn each_change_is_counted_by_its_state() {
        let none = ChangeCounts::default();
        let outcome = |outcome| change(Event::Outcome { attempt: 1, outcome });
        let evidence = |evidence| change(Event::Evidence { attempt: 1, evidence });
        for (change, state, expected) in [
            (outcome(Outcome::NotSent), BatchState::Delayed, ChangeCounts { delayed: 1, ..none }),
            (outcome(Outcome::Accepted), BatchState::Pending, none),
            (
                outcome(Outcome::Ambiguous),
                BatchState::InDoubt,
                ChangeCounts { in_doubt: 1, ..none },
            ),
            (evidence(Evidence::Inconclusive), BatchState::InDoubt, none),
            (evidence(Evidence::Absent), BatchState::Absent, ChangeCounts { absent: 1, ..none }),
            (
                change(Event::status(LedgerStatus::Committed)),
                BatchState::Committed,
                ChangeCounts { committed: 1, ..none },
            ),
            (
                change(Event::status(LedgerStatus::Invalid)),
                BatchState::Invalid,
                ChangeCounts { invalid: 1, ..none },
            ),
        ] {
            assert_eq!(counts(&change, applied(state)), expected, "{change:?}");
        }
    }

    #[test]
    fn held_batch_is_counted_as_held() {
        let event = Event::Evidence { attempt: 1, evidence: Evidence::Inconclusive };
        let held = Change { hold: Some("no evidence".to_owned()), ..change(event) };
        let expected = ChangeCounts { held: 1, ..ChangeCounts::default() };
        assert_eq!(counts(&held, applied(BatchState::InDoubt)), expected);
    }

    #[test]
    fn changes_that_were_not_applied_are_counted() {
        let none = ChangeCounts::default();
        let change = change(Event::Evidence { attempt: 1, evidence: Evidence::Committed });
        let after_invalid = ChangeOutcome::Stale(Stale::CommittedAfterInvalid);
        let expected = ChangeCounts { committed_after_invalid: 1, ..none };
        assert_eq!(counts(&change, after_invalid), expected);
        let expected = ChangeCounts { stale: 1, ..none };
        assert_eq!(counts(&change, ChangeOutcome::NotFound), expected);
    }

    #[test]
    fn batches_that_end_while_they_wait_are_counted() {
        let counters = ChangeCounters::default();
        let ended = [BatchState::Invalid, BatchState::Committed, BatchState::Invalid];
        let ended = ended.map(|state| (ItemId::from_bytes([1; 64]), state));
        counters.recorded(Recorded::EndedWaiting(&ended));
        let expected = ChangeCounts { invalid: 2, committed: 1, ..ChangeCounts::default() };
        assert_eq!(counters.read(), expected);
    }
}
