use std::sync::Arc;

use tokio::sync::Notify;

/// Makes a submitter poll its queue now, instead of at the next poll interval.
///
/// A wake-up is never lost: a submitter that is busy polls once more before it waits. Clones wake
/// the same submitter, also after it was stopped and started again.
#[derive(Debug, Clone, Default)]
pub struct SubmitterWaker(Arc<Notify>);

impl SubmitterWaker {
    /// A waker, to be given to a [`SubmitterBuilder`](crate::SubmitterBuilder) and, as a clone, to
    /// its queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the submitter poll its queue now.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}
