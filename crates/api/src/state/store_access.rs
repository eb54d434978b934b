use crate::{
    http::ApiError,
    state::{BlockingWork, DatabaseWatch},
};

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
