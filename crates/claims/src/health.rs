use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::{BatchError, BatchResult};
use log::{info, warn};

/// Whether an instance can maintain its claims now. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct ClaimHealth(Arc<Mutex<LastResult>>);

#[derive(Debug)]
struct LastResult {
    error: Option<BatchError>,
    succeeded_at: Instant,
}

impl Default for LastResult {
    fn default() -> Self {
        Self { error: None, succeeded_at: Instant::now() }
    }
}

impl ClaimHealth {
    /// Why the claims cannot be maintained; `None` if they can.
    pub fn error(&self) -> Option<BatchError> {
        self.lock().error.clone()
    }

    /// How long the claims have not been maintained until now, whether or not that has failed yet.
    pub fn since_success(&self) -> Duration {
        self.lock().succeeded_at.elapsed()
    }

    /// Stores the result's error, or clears the last one. Logs only when this changes the health:
    /// the maintainer retries several times a second.
    pub(crate) fn update<T>(&self, result: BatchResult<T>) -> Option<T> {
        let mut last = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, LastResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
