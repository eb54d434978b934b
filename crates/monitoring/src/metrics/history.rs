use std::time::{Duration, Instant};

use grid_batch_claims::ChangeCounters;
use grid_batch_core::queries::{BatchCounts, Sample};
use grid_batch_submitter::SubmitterCounters;

use crate::ServerCounts;

/// Adds what this instance did to the samples of the store, so that charts show all instances and survive a restart.
pub struct HistoryRecorder {
    submitter: SubmitterCounters,
    changes: ChangeCounters,
    /// What is stored.
    stored: ServerCounts,
    stored_at: Option<Instant>,
}

impl HistoryRecorder {
    /// A recorder of what these have counted since the start of the process.
    pub fn new(submitter: SubmitterCounters, changes: ChangeCounters) -> Self {
        Self { submitter, changes, stored: ServerCounts::default(), stored_at: None }
    }

    /// Adds what was not added yet, about once in each period. What cannot be stored is added later.
    pub(super) fn record(&mut self, store: &dyn BatchCounts, open: u64, oldest: Duration) {
        // The job that calls this is not exact, and no period should be left out.
        if self.stored_at.is_some_and(|at| at.elapsed() < Sample::PERIOD * 3 / 4) {
            return;
        }
        let counts = ServerCounts::new(self.submitter.read(), self.changes.read());
        let sample = Sample { open, oldest, ..since(&self.stored, &counts) };
        // The health reports a database that takes no writes.
        if store.add_sample(&sample).is_ok() {
            (self.stored, self.stored_at) = (counts, Some(Instant::now()));
        }
    }
}

fn since(before: &ServerCounts, now: &ServerCounts) -> Sample {
    Sample {
        attempts: now.submitted - before.submitted,
        committed: now.committed - before.committed,
        invalid: now.invalid - before.invalid,
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::mocks::MockBatchCounts;
    use grid_batch_core::{BatchError, BatchResult};

    use super::*;

    #[test]
    fn sample_has_what_happened_since_the_one_before() {
        let before = ServerCounts { submitted: 5, committed: 3, ..ServerCounts::default() };
        let now = ServerCounts { submitted: 7, committed: 4, invalid: 1, ..before };
        let expected = Sample { attempts: 2, committed: 1, invalid: 1, ..Sample::default() };
        assert_eq!(since(&before, &now), expected);
    }

    #[test]
    fn one_sample_is_added_in_a_period_and_a_failed_one_again() {
        let mut recorder =
            HistoryRecorder::new(SubmitterCounters::default(), ChangeCounters::default());
        let mut add = |result: fn() -> BatchResult<()>, times| {
            let mut store = MockBatchCounts::new();
            store.expect_add_sample().times(times).returning(move |_| result());
            recorder.record(&store, 3, Duration::ZERO);
        };
        add(|| Err(BatchError::Unavailable("no answer".to_owned())), 1);
        add(|| Ok(()), 1);
        add(|| Ok(()), 0);
    }
}
