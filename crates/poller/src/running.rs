use std::fmt;

use grid_batch_core::{InternalError, ShutdownHandle};

use crate::{
    MonitorCounters, MonitorStats, PollTrigger, RunnablePollingMonitor, ending::Ending,
    parts::Parts, thread::RuntimeThread,
};

/// A polling monitor at work: the handle to stop it by.
///
/// However it is ended, nothing more is asked; what is under way is waited for up to
/// [`drain_limit`](crate::MonitorOptions::drain_limit), and written. Dropping the handle begins this
/// and does not wait for it.
pub struct RunningPollingMonitor<I, T> {
    /// There until someone waits for it.
    pub(crate) thread: Option<RuntimeThread<Parts<I, T>>>,
    pub(crate) ending: Ending,
    pub(crate) trigger: PollTrigger,
    pub(crate) counters: MonitorCounters,
}

impl<I, T> RunningPollingMonitor<I, T>
where
    I: Send + 'static,
    T: Send + 'static,
{
    /// What the monitor has done until now.
    pub fn stats(&self) -> MonitorStats {
        self.counters.read()
    }

    /// Reads the monitor's numbers from anywhere.
    pub fn counters(&self) -> MonitorCounters {
        self.counters.clone()
    }

    /// Has services polled at once.
    pub fn trigger(&self) -> PollTrigger {
        self.trigger.clone()
    }

    /// Stops it, when what is under way has finished, and gives back what can be started again.
    pub fn stop(mut self) -> Result<RunnablePollingMonitor<I, T>, InternalError> {
        self.wind_down().map(RunnablePollingMonitor)
    }

    fn wind_down(&mut self) -> Result<Parts<I, T>, InternalError> {
        self.ending.begin();
        let ended = || InternalError::new("the polling monitor has ended already");
        self.thread.take().ok_or_else(ended)?.join()
    }
}

impl<I, T> ShutdownHandle for RunningPollingMonitor<I, T>
where
    I: Send + 'static,
    T: Send + 'static,
{
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.ending.begin();
        Ok(())
    }

    /// Waits until it has ended; without a signal before, it is given now.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.wind_down().map(drop)
    }
}

impl<I, T> Drop for RunningPollingMonitor<I, T> {
    fn drop(&mut self) {
        self.ending.begin();
    }
}

impl<I, T> fmt::Debug for RunningPollingMonitor<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningPollingMonitor")
            .field("stats", &self.counters.read())
            .finish_non_exhaustive()
    }
}
