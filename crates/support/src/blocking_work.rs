use std::sync::Arc;

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::Panic;

/// Runs work that may block, such as database calls, on tokio's blocking threads, with a limit on how much runs at
/// once. Clones share the limit.
#[derive(Debug, Clone)]
pub struct BlockingWork(Arc<Semaphore>);

impl BlockingWork {
    /// Up to `limit` pieces of work run at once; others wait.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit)))
    }

    /// Runs a piece of work. Dropping the future does not stop the work, which counts towards the limit until it ends.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panic> {
        // The semaphore is never closed.
        let place = Arc::clone(&self.0).acquire_owned().await.ok();
        let run = move || {
            let _place = place;
            work()
        };
        spawn_blocking(run).await.map_err(Panic::from)
    }
}
