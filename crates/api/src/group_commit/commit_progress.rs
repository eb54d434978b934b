use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_support::lock;

/// How long the present commit of new batches takes. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CommitProgress(Arc<Mutex<Option<Instant>>>);

impl CommitProgress {
    /// How long the present commit has taken until now; `None` if there is none.
    pub fn elapsed(&self) -> Option<Duration> {
        lock(&self.0).map(|began| began.elapsed())
    }

    /// A commit begins. It ends when the value is dropped.
    pub(crate) fn begin(&self) -> CommitInProgress<'_> {
        *lock(&self.0) = Some(Instant::now());
        CommitInProgress(self)
    }
}

pub(crate) struct CommitInProgress<'a>(&'a CommitProgress);

impl Drop for CommitInProgress<'_> {
    fn drop(&mut self) {
        *lock(&self.0.0) = None;
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
}
