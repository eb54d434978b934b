use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::BatchError;
use grid_batch_support::lock;

/// How long the present commit of new batches takes, and whether the last one failed. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CommitProgress(Arc<Mutex<Commits>>);

#[derive(Debug, Default)]
struct Commits {
    /// When the present commit began.
    began: Option<Instant>,
    /// How many have failed.
    failed: u64,
    /// The failures since the last success.
    failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy)]
struct Failure {
    first: Instant,
    last: Instant,
    is_full: bool,
}

/// Commits of new batches fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitFailure {
    /// For how long they have failed.
    pub lasted: Duration,
    /// Whether the database has no space left.
    pub is_full: bool,
}

impl CommitProgress {
    /// A failure is not shown for longer without another one: clients that send nothing to a server that is not ready
    /// would keep it so.
    const SHOWN_FOR: Duration = Duration::from_mins(1);

    /// How long the present commit has taken until now; `None` if there is none.
    pub fn elapsed(&self) -> Option<Duration> {
        lock(&self.0).began.map(|began| began.elapsed())
    }

    /// The failures since the last commit that succeeded, unless the last one was long ago.
    pub fn failure(&self) -> Option<CommitFailure> {
        let failure = lock(&self.0).failure?;
        let lasted = failure.last.duration_since(failure.first);
        (failure.last.elapsed() < Self::SHOWN_FOR)
            .then_some(CommitFailure { lasted, is_full: failure.is_full })
    }

    /// How many commits have failed since the start.
    pub fn failed(&self) -> u64 {
        lock(&self.0).failed
    }

    /// A commit begins. It ends when the value is dropped.
    pub(crate) fn begin(&self) -> CommitInProgress<'_> {
        lock(&self.0).began = Some(Instant::now());
        CommitInProgress(self)
    }

    pub(crate) fn succeeded(&self) {
        lock(&self.0).failure = None;
    }

    /// Records a failure of the database. Other parts know locked rows, and a database that does not answer.
    pub(crate) fn failed_by(&self, error: &BatchError) {
        if matches!(error, BatchError::Locked(_) | BatchError::Unavailable(_)) {
            return;
        }
        let (is_full, now) = (matches!(error, BatchError::Full(_)), Instant::now());
        let mut commits = lock(&self.0);
        commits.failed += 1;
        let first = commits.failure.map_or(now, |failure| failure.first);
        commits.failure = Some(Failure { first, last: now, is_full });
    }
}

pub(crate) struct CommitInProgress<'a>(&'a CommitProgress);

impl Drop for CommitInProgress<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).began = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_is_in_progress_until_it_ends() {
        let progress = CommitProgress::default();
        assert_eq!(progress.elapsed(), None);
        let commit = progress.begin();
        assert!(progress.clone().elapsed().is_some());
        drop(commit);
        assert_eq!(progress.elapsed(), None);
    }

    #[test]
    fn failure_lasts_until_a_commit_succeeds() {
        let progress = CommitProgress::default();
        let text = || "test".to_owned();
        progress.failed_by(&BatchError::Unavailable(text()));
        progress.failed_by(&BatchError::Locked(Vec::new()));
        assert_eq!((progress.failure(), progress.failed()), (None, 0));
        progress.failed_by(&BatchError::InternalError(text()));
        assert!(!progress.failure().unwrap().is_full);
        progress.failed_by(&BatchError::Full(text()));
        assert!(progress.failure().unwrap().is_full);
        progress.succeeded();
        assert_eq!((progress.failure(), progress.failed()), (None, 2));
    }

    #[test]
    fn failure_long_ago_is_not_shown() {
        let progress = CommitProgress::default();
        progress.failed_by(&BatchError::Full("test".to_owned()));
        if let Some(failure) = &mut lock(&progress.0).failure {
            failure.last = Instant::now().checked_sub(CommitProgress::SHOWN_FOR).unwrap();
        }
        assert_eq!(progress.failure(), None);
    }
}
