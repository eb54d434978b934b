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
    /// The failures since the last success, and when the first was.
    failure: Option<(Instant, CommitFailure)>,
}

/// Commits of new batches fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitFailure {
    /// From the first to the last failure.
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
        let (first, failure) = lock(&self.0).failure?;
        (first.elapsed() < failure.lasted + Self::SHOWN_FOR).then_some(failure)
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
        let first = commits.failure.map_or(now, |(first, _)| first);
        commits.failure = Some((first, CommitFailure { lasted: now - first, is_full }));
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
        if let Some((first, _)) = &mut lock(&progress.0).failure {
            *first = first.checked_sub(CommitProgress::SHOWN_FOR).unwrap();
        }
        assert_eq!(progress.failure(), None);
    }
}
