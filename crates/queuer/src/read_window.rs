use std::{sync::Arc, time::Duration};

use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use grid_batch_support::{Job, Jobs};

use crate::Places;

/// The in-flight window, whose count of batches under way is read from the store at intervals. As a subscriber, it is
/// called with the changes that this process records. Changes of others, such as an operator's command, and batches of
/// an earlier run are found by reading.
#[derive(Clone)]
pub struct ReadWindow {
    window: Places,
    read: Arc<ReadFn>,
}

type ReadFn = dyn Fn() -> BatchResult<Vec<(ServiceId, ItemId)>> + Send + Sync;

const READ_INTERVAL: Duration = Duration::from_secs(5);

impl ReadWindow {
    /// Gives the batches under way in the store places in this window.
    pub fn new(
        window: Places,
        read: impl Fn() -> BatchResult<Vec<(ServiceId, ItemId)>> + Send + Sync + 'static,
    ) -> Self {
        Self { window, read: Arc::new(read) }
    }

    /// The places of the window.
    pub fn window(&self) -> &Places {
        &self.window
    }

    /// Starts the job that reads the store.
    pub fn start(&self, jobs: &Jobs) -> Job {
        let window = self.clone();
        jobs.every("in-flight", READ_INTERVAL, move || window.refresh())
    }

    fn refresh(&self) -> BatchResult<()> {
        self.window.refresh(|| (self.read)())
    }
}

/// Reads the store again after a takeover, because the services may have batches under way.
impl RecordedSubscriber for ReadWindow {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, .. } => self.window.recorded(change, state),
            // The job reads it again.
            Recorded::TakenOver(_) => drop(self.refresh()),
            _ => {}
        }
    }
}
