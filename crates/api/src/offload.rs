use std::sync::Arc;

use log::error;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::error::ApiError;

/// Does what takes long away from the threads that serve connections, a few at a time.
#[derive(Debug, Clone)]
pub(crate) struct Offload(Arc<Semaphore>);

impl Offload {
    /// So many at once; further ones wait their turn.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Does this piece of work. A place is free when the work is done, not when its asker is gone.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(|_| ApiError::Internal)?;
        let done = spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.unwrap_or_else(|error| {
            error!(error:%; "a piece of work panicked");
            Err(ApiError::Internal)
        })
    }
}
