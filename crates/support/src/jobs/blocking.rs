use std::{sync::Arc, time::Duration};

use grid_batch_core::BatchResult;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::Panic;

/// A few threads for work that may block, such as database calls. Clones share the threads.
#[derive(Debug, Clone)]
pub struct BlockingPool {
    handle: Handle,
    places: Arc<Semaphore>,
}

/// How many pieces of work run at the same time, not counting those that take long.
const PLACES: usize = 2;

/// Work that takes longer than this gives its place to other work, because it may be waiting for a locked row or a
/// database that does not answer.
const LONGEST_IN_PLACE: Duration = Duration::from_millis(250);

impl BlockingPool {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle, places: Arc::new(Semaphore::new(PLACES)) }
    }

    /// Does the work as soon as there is a place. Dropping the future does not end work that has started.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panic> {
        let place = self.acquire().await;
        self.run_in(place, work).await
    }

    /// The same for work that returns a `BatchResult`. A panic is returned as an error.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        self.run(work).await.unwrap_or_else(|panic| Err(panic.into()))
    }

    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    pub(super) async fn run_in<T: Send + 'static>(
        &self,
        place: Option<OwnedSemaphorePermit>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panic> {
        let mut run = self.handle.spawn_blocking(work);
        let ended = match timeout(LONGEST_IN_PLACE, &mut run).await {
            Ok(ended) => ended,
            Err(_) => {
                drop(place);
                run.await
            }
        };
        ended.map_err(Panic::from)
    }
}
