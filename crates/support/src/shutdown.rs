use std::sync::Arc;

use grid_batch_core::InternalError;
use tokio::sync::watch;

/// A request to shut down. Threads and tasks check it or wait for it. Clones share one request.
///
/// ```
/// use grid_batch_support::Shutdown;
///
/// let shutdown = Shutdown::new();
/// let observed = shutdown.clone();
/// assert!(!observed.is_requested());
/// shutdown.request();
/// assert!(observed.is_requested());
/// ```
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<bool>>);

impl Shutdown {
    /// A shutdown that is not requested yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Requests the shutdown. A second request changes nothing.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether the shutdown has been requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the shutdown is requested.
    pub async fn requested(&self) {
        // An error would mean that the sender is gone, and it lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|requested| *requested).await;
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

/// Shuts a component down in two steps, so that several can shut down at the same time.
pub trait ShutdownHandle {
    /// Requests the shutdown.
    fn signal_shutdown(&mut self) -> Result<(), InternalError>;

    /// Waits until it has shut down.
    fn wait_for_shutdown(self) -> Result<(), InternalError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_ends_with_the_request() {
        let shutdown = Shutdown::new();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.requested().await }
        });
        assert!(!shutdown.is_requested());
        shutdown.request();
        shutdown.request();
        waiting.await.unwrap();
        shutdown.requested().await;
        assert!(shutdown.is_requested());
    }
}
