use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grid_batch_core::{BatchError, BatchResult};
use log::{info, warn};

/// Whether an instance can maintain its claims now. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct ClaimHealth(Arc<Mutex<Option<BatchError>>>);

impl ClaimHealth {
    /// Why the claims cannot be maintained; `None` if they can.
    pub fn error(&self) -> Option<BatchError> {
        self.lock().clone()
    }

    /// Stores the result's error, or clears the last one. Logs only when this changes the health:
    /// the maintainer retries several times a second.
    pub(crate) fn update<T>(&self, result: BatchResult<T>) -> Option<T> {
        let mut last = self.lock();
        match result {
            Ok(value) => {
                if last.take().is_some() {
                    info!("claims are maintained again");
                }
                Some(value)
            }
            Err(error) => {
                if last.is_none() {
                    warn!(error:% = error; "cannot maintain claims; retrying");
                }
                *last = Some(error);
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<BatchError>> {
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
