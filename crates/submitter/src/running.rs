use std::{fmt, sync::Arc, thread::JoinHandle};

use grid_batch_core::{Admission, Clock, InternalError, ScopeId, SubmissionOutcome};
use grid_batch_support::RuntimeThread;

use crate::{
    BatchRunnableSubmitter, DelayedServices, RunnableSubmitter, ShutdownHandle, SubmitterCounters,
    SubmitterOptions, SubmitterStats, SubmitterWaker,
    command::CommandFactory,
    leader::{NextDue, Queue},
    runnable::{Observers, SubmitterParts},
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
/// for up to [`drain_limit`](SubmitterOptions::drain_limit); after that its batch is in doubt. The observers
/// are notified of every outcome. Dropping the handle requests this and does not wait for it.
pub struct BatchRunningSubmitter<S: ScopeId> {
    /// `None` once the threads have been joined.
    pub(crate) threads: Option<Threads<S>>,
    pub(crate) shutdown: ShutdownDeadline,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) observers: Observers<S>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) next_due: NextDue,
    pub(crate) counters: SubmitterCounters,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) delayed: DelayedServices,
}

/// The threads of a submitter, with what each returns.
pub(crate) struct Threads<S: ScopeId> {
    pub(crate) leader: JoinHandle<Queue<S>>,
    pub(crate) runtime: RuntimeThread<()>,
    pub(crate) listener: JoinHandle<Vec<SubmissionOutcome<S>>>,
}

impl<S: ScopeId> BatchRunningSubmitter<S> {
    /// The present values of the submitter's counters.
    pub fn stats(&self) -> SubmitterStats {
        self.counters.read()
    }

    /// The services whose batches the ledger does not accept now.
    pub fn delayed_services(&self) -> DelayedServices {
        self.delayed.clone()
    }

    /// The submitter's counters.
    pub fn counters(&self) -> SubmitterCounters {
        self.counters.clone()
    }

    /// A waker that makes the submitter poll its queue now.
    pub fn waker(&self) -> SubmitterWaker {
        self.waker.clone()
    }

    /// Ends the threads, and returns the queue and the undelivered outcomes.
    fn shut_down(&mut self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        self.shutdown.request();
        let ended = || InternalError::new("the submitter has already ended");
        self.threads.take().ok_or_else(ended)?.join()
    }
}

impl<S: ScopeId> RunningSubmitter<S> for BatchRunningSubmitter<S> {
    type RunnableSubmitter = BatchRunnableSubmitter<S>;

    fn stop(mut self) -> Result<BatchRunnableSubmitter<S>, InternalError> {
        let (queue, undelivered) = self.shut_down()?;
        Ok(BatchRunnableSubmitter(SubmitterParts {
            queue,
            factory: Arc::clone(&self.factory),
            observers: self.observers.clone(),
            options: Arc::clone(&self.options),
            waker: self.waker.clone(),
            next_due: Arc::clone(&self.next_due),
            counters: self.counters.clone(),
            clock: Arc::clone(&self.clock),
            admission: self.admission.clone(),
            delayed: self.delayed.clone(),
            undelivered,
        }))
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
            .field("factory", &self.factory)
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<S: ScopeId> Threads<S> {
    fn join(self) -> Result<(Queue<S>, Vec<SubmissionOutcome<S>>), InternalError> {
        // Each thread ends after the one before it. All are joined before an error is returned.
        let queue = self.leader.join();
        let runtime = self.runtime.join();
        let undelivered = self.listener.join();
        runtime?;
        Ok((
            queue.map_err(|_| panicked("submit-leader"))?,
            undelivered.map_err(|_| panicked("submit-listener"))?,
        ))
    }
}

fn panicked(thread: &str) -> InternalError {
    InternalError::new(format!("the thread {thread} panicked"))
}
