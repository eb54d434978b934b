use std::{sync::Arc, time::Duration};

use tokio::{select, time::sleep};

use crate::http::{ApiError, ServerError};

/// Whether the database answers.
pub(crate) type DatabaseCheck = dyn Fn() -> bool + Send + Sync;

/// Ends requests that wait for a database that does not answer.
#[derive(Clone)]
pub(crate) struct DatabaseWatch(Arc<DatabaseCheck>);

impl DatabaseWatch {
    const CHECK_INTERVAL: Duration = Duration::from_millis(100);

    pub(crate) fn new(check: Arc<DatabaseCheck>) -> Self {
        Self(check)
    }

    /// An error while the database does not answer.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if (self.0)() { Ok(()) } else { Err(ServerError::DatabaseDown.into()) }
    }

    /// Awaits work that uses the database. It does not begin while the database does not answer, and is
    /// not awaited any longer once that is so: then the result is the error `interrupted`.
    pub(crate) async fn run<T>(
        &self,
        interrupted: impl Into<ApiError>,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        self.check()?;
        select! {
            biased;
            result = work => result,
            () = self.stops_answering() => Err(interrupted.into()),
        }
    }

    async fn stops_answering(&self) {
        while (self.0)() {
            sleep(Self::CHECK_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;
    use crate::batches::BatchRequestError;

    #[tokio::test(start_paused = true)]
    async fn work_ends_when_the_database_stops_answering() {
        let answers = Arc::new(AtomicBool::new(true));
        let watch = DatabaseWatch::new({
            let answers = Arc::clone(&answers);
            Arc::new(move || answers.load(Ordering::Relaxed))
        });
        assert_eq!(watch.run(ApiError::read_interrupted(), ready(Ok(7))).await, Ok(7));

        let waiting = tokio::spawn({
            let watch = watch.clone();
            async move { watch.run::<()>(BatchRequestError::BatchesNotStored, pending()).await }
        });
        tokio::task::yield_now().await;
        answers.store(false, Ordering::Relaxed);
        assert_eq!(waiting.await.unwrap(), Err(BatchRequestError::BatchesNotStored.into()));
        let refused = watch.run(ApiError::read_interrupted(), ready(Ok(7))).await;
        assert_eq!(refused, Err(ServerError::DatabaseDown.into()));
    }
}
