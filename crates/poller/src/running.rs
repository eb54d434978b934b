use std::fmt;

use grid_batch_core::InternalError;
use grid_batch_support::{RuntimeThread, Shutdown};

use crate::{
    MonitorCounters, MonitorStats, PollTrigger, RunnablePollingMonitor, ShutdownHandle,
    parts::PollerParts,
};

/// The handle of a running polling monitor.
///
/// Every way to end it does the same: no new requests are sent. Requests in flight may go on for up
/// to [`drain_limit`](crate::MonitorOptions::drain_limit), and their answers are written. Dropping
/// the handle requests this and does not wait for it.
pub struct RunningPollingMonitor<I, T> {
    /// `None` once the thread has been joined.
    pub(crate) thread: Option<RuntimeThread<PollerParts<I, T>>>,
    pub(crate) shutdown: Shutdown,
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
    pub fn stop(mut self) -> Result<RunnablePollingMonitor<I, T>, InternalError> {
        self.shut_down().map(RunnablePollingMonitor)
    }

    fn shut_down(&mut self) -> Result<PollerParts<I, T>, InternalError> {
        self.shutdown.request();
        let ended = || InternalError::new("the polling monitor has already ended");
        self.thread.take().ok_or_else(ended)?.join()
    }
}

impl<I, T> ShutdownHandle for RunningPollingMonitor<I, T>
where
    I: Send + 'static,
    T: Send + 'static,
{
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    /// Requests the shutdown if nothing has yet, and waits until the monitor has ended.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.shut_down().map(drop)
    }
}

impl<I, T> Drop for RunningPollingMonitor<I, T> {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl<I, T> fmt::Debug for RunningPollingMonitor<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningPollingMonitor")
            .field("stats", &self.counters.read())
            .finish_non_exhaustive()
    }
}
