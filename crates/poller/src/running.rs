use std::fmt;

use grid_batch_core::InternalError;
use grid_batch_support::Job;

use crate::{
    MonitorCounters, MonitorStats, PollTrigger, RunnablePollingMonitor, ShutdownHandle,
    parts::PollerParts,
};

/// The handle of a running polling monitor.
///
/// However it is ended, no new requests are sent. Requests in flight may continue for up to
/// [`drain_limit`](crate::MonitorOptions::drain_limit), and their answers are written. Dropping the handle requests
/// this but does not wait for it.
pub struct RunningPollingMonitor<I, T> {
    pub(crate) job: Job<PollerParts<I, T>>,
    pub(crate) trigger: PollTrigger,
    pub(crate) counters: MonitorCounters,
}

impl<I, T> RunningPollingMonitor<I, T>
where
    I: Send + 'static,
    T: Send + 'static,
{
    /// The present values of the monitor's counters.
    pub fn stats(&self) -> MonitorStats {
        self.counters.read()
    }

    /// The monitor's counters.
    pub fn counters(&self) -> MonitorCounters {
        self.counters.clone()
    }

    /// A trigger that makes the monitor poll a service now.
    pub fn trigger(&self) -> PollTrigger {
        self.trigger.clone()
    }

    /// Stops the monitor, and returns it ready to run again.
    pub fn stop(self) -> Result<RunnablePollingMonitor<I, T>, InternalError> {
        self.job.join().map(RunnablePollingMonitor)
    }
}

impl<I, T> ShutdownHandle for RunningPollingMonitor<I, T>
where
    I: Send + 'static,
    T: Send + 'static,
{
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.job.signal_shutdown()
    }

    /// Requests the shutdown if nothing has yet, and waits until the monitor has ended.
    fn wait_for_shutdown(self) -> Result<(), InternalError> {
        self.job.wait_for_shutdown()
    }
}

impl<I, T> fmt::Debug for RunningPollingMonitor<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningPollingMonitor")
            .field("stats", &self.counters.read())
            .finish_non_exhaustive()
    }
}
