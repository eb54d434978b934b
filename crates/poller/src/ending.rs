use std::sync::Arc;

use tokio::sync::watch;

/// The word to end: whoever works for a monitor listens for it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Ending(Arc<watch::Sender<bool>>);

impl Ending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Says it; a second time changes nothing.
    pub(crate) fn begin(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is said.
    pub(crate) async fn begun(&self) {
        // An error would say that the sender is gone, which lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|begun| *begun).await;
    }
}
