//! The in-flight window, which limits how many batches are under way.

use std::{
    sync::Arc,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use grid_batch_core::{InternalError, Recorded, RecordedSubscriber};
use grid_batch_queuer::{PlaceLimits, Places, WakeUp};
use grid_batch_store::ClaimStore;
use grid_batch_support::PeriodicThread;
use grid_batch_work::WorkTable;
use log::{info, warn};

use crate::Config;

/// A window whose count of batches under way is read from the store at intervals. It is called with what this
/// process records; what others record, such as an operator's command, and what an earlier run left, is read.
#[derive(Clone)]
pub(super) struct ReadWindow {
    window: Places,
    claims: ClaimStore,
    has_failed: Arc<AtomicBool>,
}

const READ_INTERVAL: Duration = Duration::from_secs(5);

impl ReadWindow {
    /// The window, if several batches of a service may be under way.
    pub(super) fn new(
        config: &Config,
        claims: &ClaimStore,
        work: &WorkTable,
        wake_up: &WakeUp,
    ) -> Option<Self> {
        if !config.store.scheduling.uses_declared_access {
            return None;
        }
        let wake_up = wake_up.clone();
        let (limits, clock) = (PlaceLimits::window(config.in_flight), &config.queue.clock);
        let wake = move |service| wake_up.wake(service);
        let window = Places::new(limits, work.clone(), Arc::clone(clock), wake);
        Some(Self { window, claims: claims.clone(), has_failed: Arc::default() })
    }

    pub(super) fn window(&self) -> &Places {
        &self.window
    }

    /// Starts the thread that reads the store.
    pub(super) fn start(&self) -> Result<PeriodicThread, InternalError> {
        let window = self.clone();
        PeriodicThread::start("in-flight", READ_INTERVAL, move || window.refresh())
    }

    fn refresh(&self) {
        let read = self.window.refresh(|| Ok(self.claims.under_way()?));
        let had_failed = self.has_failed.swap(read.is_err(), Ordering::Relaxed);
        match read {
            Err(error) if !had_failed => {
                warn!(error:% = error; "cannot read which batches are under way; it is tried again");
            }
            Ok(()) if had_failed => info!("batches under way are read again"),
            _ => {}
        }
    }
}

/// Services that were taken over may have batches under way.
impl RecordedSubscriber for ReadWindow {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state, .. } => self.window.recorded(change, state),
            Recorded::TakenOver(_) => self.refresh(),
            _ => {}
        }
    }
}
