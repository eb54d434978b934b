use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::claims::Takeover;
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_support::lock;
use log::{info, warn};

/// Whether an instance can maintain its claims now. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct ClaimHealth(Arc<Mutex<LastResult>>);

#[derive(Debug)]
struct LastResult {
    error: Option<BatchError>,
    succeeded_at: Instant,
    taken: u64,
    orphaned: u64,
    lost: u64,
}

impl Default for LastResult {
    fn default() -> Self {
        Self { error: None, succeeded_at: Instant::now(), taken: 0, orphaned: 0, lost: 0 }
    }
}

impl ClaimHealth {
    /// Why the claims cannot be maintained; `None` if they can.
    pub fn error(&self) -> Option<BatchError> {
        lock(&self.0).error.clone()
    }

    /// Time since the claims were last maintained, whether or not an attempt has failed since.
    pub fn since_success(&self) -> Duration {
        lock(&self.0).succeeded_at.elapsed()
    }

    /// How many services were claimed since the start.
    pub fn taken(&self) -> u64 {
        lock(&self.0).taken
    }

    /// How many batches were with the submitter of an instance that lost its claims.
    pub fn orphaned(&self) -> u64 {
        lock(&self.0).orphaned
    }

    /// How many other instances stopped to renew their claims without releasing them.
    pub fn lost(&self) -> u64 {
        lock(&self.0).lost
    }

    pub(crate) fn count(&self, takeover: &Takeover) {
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let mut last = lock(&self.0);
        last.taken += count(takeover.claims.len());
        last.orphaned += count(takeover.in_doubt.len());
        last.lost += count(takeover.lost.len());
        for instance in &takeover.lost {
            warn!(lost:% = instance;
                "another instance has stopped without releasing its services, which others have taken");
        }
    }

    /// Stores the result's error, or clears the last one. Logs only when this changes the health:
    /// the maintainer retries several times a second.
    pub(crate) fn update<T>(&self, result: BatchResult<T>) -> Option<T> {
        let mut last = lock(&self.0);
        match result {
            Ok(value) => {
                last.succeeded_at = Instant::now();
                if last.error.take().is_some() {
                    info!("claims are maintained again");
                }
                Some(value)
            }
            Err(error) => {
                if last.error.is_none() {
                    warn!(error:% = error; "cannot maintain claims; retrying");
                }
                last.error = Some(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_lasts_until_the_next_success() {
        let health = ClaimHealth::default();
        let error = BatchError::Unavailable("no connection".to_owned());
        assert_eq!(health.update::<()>(Err(error.clone())), None);
        assert_eq!(health.error(), Some(error));
        assert_eq!(health.update(Ok(7)), Some(7));
        assert_eq!(health.error(), None);
    }
}
