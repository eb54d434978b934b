use std::sync::Arc;

use log::error;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::http::ApiError;

/// Runs blocking work outside the threads that serve connections, with a limit on how much runs at
/// once.
#[derive(Debug, Clone)]
pub(crate) struct BlockingWork(Arc<Semaphore>);

impl BlockingWork {
    /// A pool that runs up to `limit` pieces of work at once; more wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit)))
    }

    /// Runs a piece of work. Dropping the future does not stop the work, which counts until it ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|_| ApiError::Internal)?;
        let task = spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        task.await.unwrap_or_else(|error| {
            error!(error:%; "blocking work of a request panicked");
            Err(ApiError::Internal)
        })
    }
}
