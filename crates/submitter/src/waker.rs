use std::sync::Arc;

use tokio::sync::Notify;

/// Tells a submitter that its queue may have something: it polls at once.
///
/// A wake-up is never lost: if the submitter is not waiting, it polls once more before it waits.
/// Cheap to clone; it stays good when the submitter is stopped and started again.
#[derive(Debug, Clone, Default)]
pub struct SubmitterWaker(Arc<Notify>);

impl SubmitterWaker {
    /// A waker, to be given to both a queue and a [`SubmitterBuilder`](crate::SubmitterBuilder).
    pub fn new() -> Self {
        Self::default()
    }

    /// Has the queue polled at once.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}
