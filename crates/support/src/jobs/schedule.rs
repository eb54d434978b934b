use std::{future::pending, mem, sync::Arc, time::Duration};

use grid_batch_core::BatchResult;
use tokio::{
    select,
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The longest pause before a failed job runs again, unless its schedule says otherwise.
const LONGEST_FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// When a job runs.
#[derive(Debug, Clone)]
pub struct Schedule {
    first: Duration,
    interval: Duration,
    after_failure: Duration,
    trigger: Option<JobTrigger>,
}

/// When to run a job again after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// There is more to do.
    AtOnce,
    /// After the interval of its schedule.
    AfterInterval,
    /// After this pause.
    After(Duration),
}

/// Makes a job run now. Several calls before it runs count as one. Clones belong to the same job.
#[derive(Debug, Clone, Default)]
pub struct JobTrigger(Arc<Notify>);

impl JobTrigger {
    /// Makes the job run now.
    pub fn fire(&self) {
        self.0.notify_one();
    }
}

impl Schedule {
    /// Runs after each interval.
    pub fn every(interval: Duration) -> Self {
        let after_failure = interval.min(LONGEST_FAILURE_PAUSE);
        Self { first: interval, interval, after_failure, trigger: None }
    }

    /// Sets the time before the first run.
    #[must_use]
    pub fn first_after(self, first: Duration) -> Self {
        Self { first, ..self }
    }

    /// Sets the pause after a run that failed.
    #[must_use]
    pub fn after_failure(self, after_failure: Duration) -> Self {
        Self { after_failure, ..self }
    }

    /// Also runs when the trigger is fired.
    #[must_use]
    pub fn or_on(self, trigger: &JobTrigger) -> Self {
        Self { trigger: Some(trigger.clone()), ..self }
    }

    pub(super) fn first(&self) -> Duration {
        self.first
    }

    pub(super) fn pause_after(&self, result: &BatchResult<Next>) -> Duration {
        match result {
            Ok(Next::AtOnce) => Duration::ZERO,
            Ok(Next::AfterInterval) => self.interval,
            Ok(Next::After(pause)) => *pause,
            Err(_) => self.after_failure,
        }
    }

    /// Waits until the job is to run.
    pub(super) async fn wait(&self, due: Instant) {
        select! {
            () = sleep_until(due) => {}
            () = self.triggered() => {}
        }
    }

    async fn triggered(&self) {
        match &self.trigger {
            Some(trigger) => trigger.0.notified().await,
            None => pending().await,
        }
    }
}

/// Limits the share of the time in which a job runs.
///
/// The shorter of the last two runs counts, so that one that had to wait, such as for a database that was away, does not
/// cause a long pause.
#[derive(Debug, Clone)]
pub struct TimeShare {
    shortest_pause: Duration,
    runs_in_pause: u32,
    last: Duration,
}

impl TimeShare {
    /// A pause is at least `shortest_pause`, and this many times as long as a run.
    pub fn new(shortest_pause: Duration, runs_in_pause: u32) -> Self {
        Self { shortest_pause, runs_in_pause, last: Duration::ZERO }
    }

    /// The pause after a run that took this long.
    pub fn pause_after(&mut self, took: Duration) -> Duration {
        let counted = took.min(mem::replace(&mut self.last, took));
        (counted * self.runs_in_pause).max(self.shortest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_run_causes_no_long_pause() {
        let mut share = TimeShare::new(Duration::from_secs(5), 50);
        let pauses = [1, 30, 1, 2, 2].map(|took| share.pause_after(Duration::from_secs(took)));
        assert_eq!(pauses.map(|pause| pause.as_secs()), [5, 50, 50, 50, 100]);
    }
}
