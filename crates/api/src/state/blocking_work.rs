use std::sync::Arc;

use log::error;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{http::ApiError, state::DatabaseWatch};

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

/// Runs what uses the store, and answers soon when the database does not.
#[derive(Debug, Clone)]
pub(crate) struct StoreAccess {
    pool: BlockingWork,
    database: DatabaseWatch,
    /// The answer if the database stops answering while it is used.
    interrupted: ApiError,
}

impl StoreAccess {
    /// Access for up to `limit` requests at once; more wait.
    pub(crate) fn new(limit: usize, database: DatabaseWatch, interrupted: ApiError) -> Self {
        Self { pool: BlockingWork::new(limit), database, interrupted }
    }

    /// Runs a piece of work. It goes on if its request is answered before, or ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.database.run(self.interrupted.clone(), self.pool.run(work)).await
    }
}
