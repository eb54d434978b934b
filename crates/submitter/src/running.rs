use std::{fmt, sync::Arc};

use grid_batch_core::ledger::SubmissionOutcome;
use grid_batch_core::{InternalError, ScopeId};
use grid_batch_support::Job;

use crate::{
    BatchRunnableSubmitter, DelayedServices, RunnableSubmitter, ShutdownHandle, SubmitterCounters,
    SubmitterStats, SubmitterWaker, leader::Queue, runnable::SubmitterParts,
    shutdown_deadline::ShutdownDeadline,
};

/// What every handle of a running submitter does.
pub trait RunningSubmitter<S: ScopeId>: ShutdownHandle {
    /// The submitter after it was stopped.
    type RunnableSubmitter: RunnableSubmitter<S>;

    /// Stops it after the work in flight has finished, and returns what can be started again.
    fn stop(self) -> Result<Self::RunnableSubmitter, InternalError>;
}

/// The handle of a running submitter.
///
/// Every way to end it does the same: nothing more is taken from the queue. An attempt in flight may go on
/// for up to [`drain_limit`](crate::SubmitterOptions::drain_limit); after that its batch is in doubt. The observers
/// are notified of every outcome. Dropping the handle requests this and does not wait for it.
pub struct BatchRunningSubmitter<S: ScopeId> {
    pub(crate) parts: Arc<SubmitterParts<S>>,
    pub(crate) shutdown: ShutdownDeadline,
    /// `None` once they have been joined.
    pub(crate) running: Option<SubmitterJobs<S>>,
}

/// The jobs of a submitter, with what each returns.
pub(crate) struct SubmitterJobs<S: ScopeId> {
    pub(crate) leader: Job<Queue<S>>,
    pub(crate) tasks: Job,
    pub(crate) listener: Job<Vec<SubmissionOutcome<S>>>,
}

impl<S: ScopeId> BatchRunningSubmitter<S> {
    /// The present values of the submitter's counters.
    pub fn stats(&self) -> SubmitterStats {
        self.parts.counters.read()
    }

    /// The services whose batches the ledger does not accept now.
    pub fn delayed_services(&self) -> DelayedServices {
        self.parts.delayed.clone()
    }

    /// The submitter's counters.
    pub fn counters(&self) -> SubmitterCounters {
        self.parts.counters.clone()
    }

    /// A waker that makes the submitter poll its queue now.
    pub fn waker(&self) -> SubmitterWaker {
        self.parts.waker.clone()
    }

    /// Ends the jobs, and returns the queue and the undelivered outcomes.
    fn shut_down(&mut self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        self.shutdown.request();
        let ended = || InternalError::new("the submitter has already ended");
        self.running.take().ok_or_else(ended)?.join()
    }
}

impl<S: ScopeId> RunningSubmitter<S> for BatchRunningSubmitter<S> {
    type RunnableSubmitter = BatchRunnableSubmitter<S>;

    fn stop(mut self) -> Result<BatchRunnableSubmitter<S>, InternalError> {
        let (queue, undelivered) = self.shut_down()?;
        Ok(BatchRunnableSubmitter { parts: Arc::clone(&self.parts), queue, undelivered })
    }
}

impl<S: ScopeId> ShutdownHandle for BatchRunningSubmitter<S> {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    /// Requests the shutdown if nothing has yet, and waits until the submitter has ended. It is an
    /// error if outcomes could not be delivered to the group observer.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        let (_, undelivered) = self.shut_down()?;
        match undelivered.len() {
            0 => Ok(()),
            count => Err(InternalError::new(format!(
                "the outcomes of {count} batches were not delivered to the group observer"
            ))),
        }
    }
}

impl<S: ScopeId> Drop for BatchRunningSubmitter<S> {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl<S: ScopeId> fmt::Debug for BatchRunningSubmitter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRunningSubmitter")
            .field("factory", &self.parts.factory)
            .field("options", &self.parts.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<S: ScopeId> SubmitterJobs<S> {
    fn join(self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        // Each ends after the one before it. All are joined before an error is returned.
        let (queue, tasks, undelivered) =
            (self.leader.join(), self.tasks.join(), self.listener.join());
        tasks?;
        Ok((queue?, undelivered?))
    }
}
