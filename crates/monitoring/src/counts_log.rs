use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use grid_batch_claims::ChangeCounters;
use grid_batch_queuer::{InFlightCounts, Places};
use grid_batch_submitter::SubmitterCounters;
use grid_batch_support::{Job, Jobs};
use log::info;
use tokio::time::sleep;

/// Logs at intervals what has happened to batches since the previous log line, and once more when it is dropped.
#[derive(Debug)]
pub struct CountsLog {
    state: Arc<CountsState>,
    job: Option<Job>,
}

struct CountsState {
    submitter: SubmitterCounters,
    changes: ChangeCounters,
    in_flight: Option<Places>,
    logged: Mutex<Counts>,
}

/// How often each of these has happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    accepted: u64,
    committed: u64,
    invalid: u64,
    held: u64,
    delayed: u64,
    in_doubt: u64,
    submitted_again: u64,
}

impl CountsLog {
    /// Starts the job that logs.
    pub fn start(
        interval: Duration,
        submitter: SubmitterCounters,
        changes: ChangeCounters,
        in_flight: Option<Places>,
        jobs: &Jobs,
    ) -> Self {
        let logged = Mutex::default();
        let state = Arc::new(CountsState { submitter, changes, in_flight, logged });
        let shared = Arc::clone(&state);
        let job = jobs.spawn("log-counts", async move {
            loop {
                sleep(interval).await;
                shared.log();
            }
        });
        Self { state, job: Some(job) }
    }
}

impl Drop for CountsLog {
    fn drop(&mut self) {
        // A panic was logged.
        let _ = self.job.take().map(Job::join);
        self.state.log();
    }
}

impl CountsState {
    fn log(&self) {
        let counts = self.read();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let new = counts.since(&logged);
        *logged = counts;
        if new == Counts::default() {
            return;
        }
        let Counts { accepted, committed, invalid, held, delayed, in_doubt, submitted_again } = new;
        info!(
            accepted, committed, invalid, held, delayed, in_doubt, submitted_again;
            "batches since the last count"
        );
        if let Some(in_flight) = &self.in_flight {
            let InFlightCounts { under_way, overdue, window, largest } = in_flight.counts();
            info!(under_way, overdue, window, largest; "batches under way");
        }
    }

    fn read(&self) -> Counts {
        let changes = self.changes.read();
        Counts {
            accepted: self.submitter.read().accepted,
            committed: changes.committed,
            invalid: changes.invalid,
            held: changes.held,
            delayed: changes.delayed,
            in_doubt: changes.in_doubt,
            submitted_again: changes.absent,
        }
    }
}

impl Counts {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            accepted: self.accepted - earlier.accepted,
            committed: self.committed - earlier.committed,
            invalid: self.invalid - earlier.invalid,
            held: self.held - earlier.held,
            delayed: self.delayed - earlier.delayed,
            in_doubt: self.in_doubt - earlier.in_doubt,
            submitted_again: self.submitted_again - earlier.submitted_again,
        }
    }
}

impl std::fmt::Debug for CountsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountsState").field("logged", &self.logged).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_since_the_last_line() {
        let earlier = Counts { accepted: 3, committed: 2, ..Counts::default() };
        let now = Counts { accepted: 5, committed: 2, held: 1, ..Counts::default() };
        let new = Counts { accepted: 2, held: 1, ..Counts::default() };
        assert_eq!(now.since(&earlier), new);
        assert_eq!(now.since(&now), Counts::default());
    }
}
