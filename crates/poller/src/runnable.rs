use std::fmt;

use grid_batch_core::{BatchId, BatchStatus, InternalError};

use crate::{
    MonitorCounters, PollTrigger, RunningPollingMonitor, ending::Ending, leader::Leader,
    parts::Parts, runtime, thread::RuntimeThread,
};

/// A polling monitor that is configured and not running: fresh from its builder, or stopped.
pub struct RunnablePollingMonitor<I, T>(pub(crate) Parts<I, T>);

impl<I, T> RunnablePollingMonitor<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    /// Starts it.
    pub fn run(self) -> Result<RunningPollingMonitor<I, T>, InternalError> {
        let ending = Ending::new();
        let (trigger, counters) = (self.trigger(), self.counters());
        let (leaders, workers) = (ending.clone(), self.0.options.worker_threads);
        let thread = RuntimeThread::start(
            "poll-leader",
            || runtime::for_questions(workers),
            move |runtime| Leader::new(self.0, runtime, leaders).run(),
        )?;
        Ok(RunningPollingMonitor { thread: Some(thread), ending, trigger, counters })
    }
}

impl<I, T> RunnablePollingMonitor<I, T> {
    /// Has services polled at once.
    pub fn trigger(&self) -> PollTrigger {
        self.0.trigger.clone()
    }

    /// Reads the monitor's numbers from anywhere.
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
