use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room for submissions: what is taken from a queue is marked as submitted already, so nothing is
/// taken without a place.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    count: u32,
    sending: Arc<Semaphore>,
    telling: Arc<Semaphore>,
}

/// The place of one submission.
#[derive(Debug)]
pub(crate) struct Place {
    /// Held until its task has ended.
    pub(crate) sending: OwnedSemaphorePermit,
    /// Held until the observers know: when they fail, outcomes must not pile up.
    pub(crate) telling: OwnedSemaphorePermit,
}

impl Places {
    /// Room for `count` to be sent at once, and for `waiting` more to be told of.
    pub(crate) fn new(count: u32, waiting: usize) -> Self {
        let sending = usize::try_from(count).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let telling = sending.saturating_add(waiting).min(Semaphore::MAX_PERMITS);
        Self {
            count,
            sending: Arc::new(Semaphore::new(sending)),
            telling: Arc::new(Semaphore::new(telling)),
        }
    }

    /// A place, if one is free.
    pub(crate) fn try_take(&self) -> Option<Place> {
        let telling = Arc::clone(&self.telling).try_acquire_owned().ok()?;
        let sending = Arc::clone(&self.sending).try_acquire_owned().ok()?;
        Some(Place { sending, telling })
    }

    /// A place, as soon as one is free.
    pub(crate) async fn take(&self) -> Option<Place> {
        let telling = Arc::clone(&self.telling).acquire_owned().await.ok()?;
        let sending = Arc::clone(&self.sending).acquire_owned().await.ok()?;
        Some(Place { sending, telling })
    }

    /// Waits until no task is left.
    pub(crate) async fn all_free(&self) {
        // An error would say that it is closed, which it never is.
        let _ = self.sending.acquire_many(self.count).await;
    }
}
