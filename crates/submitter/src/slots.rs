use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits the submissions in flight.
///
/// A queue marks what it hands out as submitted, so the leader acquires a slot before it polls.
#[derive(Debug, Clone)]
pub(crate) struct SubmissionSlots {
    concurrency: u32,
    sending: Arc<Semaphore>,
    reporting: Arc<Semaphore>,
}

/// The permits of one submission.
#[derive(Debug)]
pub(crate) struct SubmissionSlot {
    /// Held until the task of the submission has ended.
    pub(crate) sending: OwnedSemaphorePermit,
    /// Held until the observers have the outcome: bounds the outcomes that wait while they fail.
    pub(crate) reporting: OwnedSemaphorePermit,
}

impl SubmissionSlots {
    /// Slots for `concurrency` submissions that are sent at once, and for `unreported` more whose
    /// outcomes wait for the observers.
    pub(crate) fn new(concurrency: u32, unreported: usize) -> Self {
        let sending =
            usize::try_from(concurrency).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let reporting = sending.saturating_add(unreported).min(Semaphore::MAX_PERMITS);
        Self {
            concurrency,
            sending: Arc::new(Semaphore::new(sending)),
            reporting: Arc::new(Semaphore::new(reporting)),
        }
    }

    /// A slot, if one is free.
    pub(crate) fn try_acquire(&self) -> Option<SubmissionSlot> {
        let reporting = Arc::clone(&self.reporting).try_acquire_owned().ok()?;
        let sending = Arc::clone(&self.sending).try_acquire_owned().ok()?;
        Some(SubmissionSlot { sending, reporting })
    }

    /// Waits for a free slot.
    pub(crate) async fn acquire(&self) -> Option<SubmissionSlot> {
        let reporting = Arc::clone(&self.reporting).acquire_owned().await.ok()?;
        let sending = Arc::clone(&self.sending).acquire_owned().await.ok()?;
        Some(SubmissionSlot { sending, reporting })
    }

    /// Waits until every task has ended.
    pub(crate) async fn wait_until_idle(&self) {
        // An error would mean that the semaphore is closed, which never happens.
        let _ = self.sending.acquire_many(self.concurrency).await;
    }
}
