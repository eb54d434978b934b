use std::fmt;

use grid_batch_core::InternalError;
use grid_batch_core::polling::{BatchId, BatchStatus};
use grid_batch_support::{Jobs, Shutdown};

use crate::{
    MonitorCounters, PollTrigger, RunningPollingMonitor, leader::Leader, parts::PollerParts,
};

/// A polling monitor that is configured but not running: new from its builder, or stopped.
pub struct RunnablePollingMonitor<I, T>(pub(crate) PollerParts<I, T>);

impl<I, T> RunnablePollingMonitor<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    /// Starts the monitor.
    pub fn run(self) -> Result<RunningPollingMonitor<I, T>, InternalError> {
        let (trigger, counters) = (self.trigger(), self.counters());
        let jobs = match &self.0.jobs {
            Some(jobs) => jobs.clone(),
            None => Jobs::with_workers(self.0.options.worker_threads)?,
        };
        let (shutdown, handle) = (Shutdown::new(), jobs.handle().clone());
        let requested = shutdown.clone();
        // It has its own thread, because its store blocks and it must not wait behind other work.
        let job = jobs.thread("poll-leader", shutdown, move || {
            Leader::new(self.0, handle, requested).run()
        })?;
        Ok(RunningPollingMonitor { job, trigger, counters })
    }
}

impl<I, T> RunnablePollingMonitor<I, T> {
    /// A trigger that makes the monitor poll a service now.
    pub fn trigger(&self) -> PollTrigger {
        self.0.trigger.clone()
    }

    /// The monitor's counters.
    pub fn counters(&self) -> MonitorCounters {
        self.0.counters().clone()
    }
}

impl<I, T> fmt::Debug for RunnablePollingMonitor<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunnablePollingMonitor")
            .field("options", &self.0.options)
            .field("clock", &self.0.clock)
            .finish_non_exhaustive()
    }
}
