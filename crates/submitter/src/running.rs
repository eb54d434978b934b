use std::{fmt, sync::Arc, thread::JoinHandle};

use grid_batch_core::{
    InternalError, RunningSubmitter, ScopeId, ShutdownHandle, SubmissionOutcome,
};

use crate::{
    BatchRunnableSubmitter, SubmitterCounters, SubmitterOptions, SubmitterStats, SubmitterWaker,
    command::CommandFactory,
    drain::Drain,
    leader::Queue,
    runnable::{Observers, Parts},
};

/// A submitter at work: the handle to stop it by.
///
/// However it is ended, nothing more is taken from the queue; what only waits to be sent again ends
/// with its last answer; what is being sent is waited for up to
/// [`drain_limit`](SubmitterOptions::drain_limit), and in doubt after it; and the observers are told
/// of everything. Dropping the handle begins this and does not wait for it.
pub struct BatchRunningSubmitter<S: ScopeId> {
    /// There until someone waits for them.
    pub(crate) threads: Option<Threads<S>>,
    pub(crate) drain: Drain,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) observers: Observers<S>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) counters: SubmitterCounters,
}

/// The threads, with what they give back when they end.
pub(crate) struct Threads<S: ScopeId> {
    pub(crate) leader: JoinHandle<Queue<S>>,
    pub(crate) runtime: JoinHandle<()>,
    pub(crate) listener: JoinHandle<Vec<SubmissionOutcome<S>>>,
}

impl<S: ScopeId> BatchRunningSubmitter<S> {
    /// What the submitter has done until now.
    pub fn stats(&self) -> SubmitterStats {
        self.counters.read()
    }

    /// Reads the submitter's numbers from anywhere.
    pub fn counters(&self) -> SubmitterCounters {
        self.counters.clone()
    }

    /// Has the queue polled at once.
    pub fn waker(&self) -> SubmitterWaker {
        self.waker.clone()
    }

    /// Ends the threads and collects what they had.
    fn wind_down(&mut self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        self.drain.begin();
        let ended = || InternalError::new("the submitter has ended already");
        self.threads.take().ok_or_else(ended)?.join()
    }
}

impl<S: ScopeId> RunningSubmitter<S> for BatchRunningSubmitter<S> {
    type RunnableSubmitter = BatchRunnableSubmitter<S>;

    fn stop(mut self) -> Result<BatchRunnableSubmitter<S>, InternalError> {
        let (queue, undelivered) = self.wind_down()?;
        Ok(BatchRunnableSubmitter(Parts {
            queue,
            factory: Arc::clone(&self.factory),
            observers: self.observers.clone(),
            options: Arc::clone(&self.options),
            waker: self.waker.clone(),
            counters: self.counters.clone(),
            undelivered,
        }))
    }
}

impl<S: ScopeId> ShutdownHandle for BatchRunningSubmitter<S> {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.drain.begin();
        Ok(())
    }

    /// Waits until it has ended; without a signal before, it is given now. An error says that the
    /// group observer was not told of everything.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        let (_, undelivered) = self.wind_down()?;
        match undelivered.len() {
            0 => Ok(()),
            count => Err(InternalError::new(format!(
                "the group observer was not told of the outcomes of {count} batches"
            ))),
        }
    }
}

impl<S: ScopeId> Drop for BatchRunningSubmitter<S> {
    fn drop(&mut self) {
        self.drain.begin();
    }
}

impl<S: ScopeId> fmt::Debug for BatchRunningSubmitter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRunningSubmitter")
            .field("factory", &self.factory)
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<S: ScopeId> Threads<S> {
    fn join(self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        // Each ends when the one before it has; all are waited for before any error is returned.
        let queue = self.leader.join();
        let runtime = self.runtime.join();
        let undelivered = self.listener.join();
        runtime.map_err(|_| panicked("submit-runtime"))?;
        Ok((
            queue.map_err(|_| panicked("submit-leader"))?,
            undelivered.map_err(|_| panicked("submit-listener"))?,
        ))
    }
}

fn panicked(name: &str) -> InternalError {
    InternalError::new(format!("the submitter's thread {name} panicked"))
}
