//! The in-flight window, which limits how many batches are under way.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{BatchResult, Recorded, RecordedSubscriber};
use grid_batch_queuer::{PlaceLimits, Places, WakeUp};
use grid_batch_store::ClaimStore;
use grid_batch_support::{Job, Jobs};
use grid_batch_work::WorkTable;

use crate::Config;

/// A window whose count of batches under way is read from the store at intervals. It is called with what this
/// process records; what others record, such as an operator's command, and what an earlier run left, is read.
#[derive(Clone)]
pub(super) struct ReadWindow {
    window: Places,
    claims: ClaimStore,
}

const READ_INTERVAL: Duration = Duration::from_secs(5);

impl ReadWindow {
    /// The window, if several batches of a service may be under way.
    pub(super) fn new(
        config: &Config,
        claims: &ClaimStore,
        table: &WorkTable,
        wake_up: &WakeUp,
    ) -> Option<Self> {
        if !config.store.scheduling.uses_declared_access {
            return None;
        }
        let wake_up = wake_up.clone();
        let (limits, clock) = (PlaceLimits::window(config.in_flight), &config.queue.clock);
        let wake = move |service| wake_up.wake(service);
        let window = Places::new(limits, table.clone(), Arc::clone(clock), wake);
        Some(Self { window, claims: claims.clone() })
    }

    pub(super) fn window(&self) -> &Places {
        &self.window
    }

    /// Starts the job that reads the store.
    pub(super) fn start(&self, jobs: &Jobs) -> Job {
        let window = self.clone();
        jobs.every("in-flight", READ_INTERVAL, move || window.refresh())
    }

    fn refresh(&self) -> BatchResult<()> {
        self.window.refresh(|| Ok(self.claims.under_way()?))
    }
}

/// Services that were taken over may have batches under way.
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
