use grid_batch_support::BlockingWork;
use log::error;

use crate::{
    http::{ApiError, ServerError},
    state::DatabaseWatch,
};

/// Runs a piece of work of a request outside the threads that serve connections, within the limit of `places`.
pub(crate) async fn run_blocking<T: Send + 'static>(
    places: &BlockingWork,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    places.run(work).await.unwrap_or_else(|panic| {
        error!(error:% = panic; "blocking work of a request panicked");
        Err(ServerError::Internal.into())
    })
}

/// Runs what uses the store, and answers soon when the database does not.
#[derive(Clone)]
pub(crate) struct StoreAccess {
    places: BlockingWork,
    database: DatabaseWatch,
    /// The answer if the database stops answering while it is used.
    interrupted: ApiError,
}

impl StoreAccess {
    /// Access for up to `limit` requests at once; more wait.
    pub(crate) fn new(
        limit: usize,
        database: DatabaseWatch,
        interrupted: impl Into<ApiError>,
    ) -> Self {
        Self { places: BlockingWork::new(limit), database, interrupted: interrupted.into() }
    }

    /// Runs a piece of work. It goes on if its request is answered before, or ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.database.run(self.interrupted.clone(), run_blocking(&self.places, work)).await
    }
}
