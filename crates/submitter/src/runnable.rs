use std::{
    fmt,
    sync::{Arc, mpsc},
};

use grid_batch_core::{Admission, Clock, GroupObserver, InternalError, ScopeId, SubmissionOutcome};
use grid_batch_support::{GroupPause, Jobs};
use tokio::sync::mpsc::unbounded_channel;

use crate::{
    BatchRunningSubmitter, DelayedServices, RunningSubmitter, SubmitterCounters, SubmitterObserver,
    SubmitterOptions, SubmitterWaker,
    command::CommandFactory,
    group_notifier::GroupNotifier,
    leader::{Leader, Queue},
    listener::Listener,
    message::TaskMessage,
    running::SubmitterJobs,
    runtime::TaskRuntime,
    shutdown_deadline::ShutdownDeadline,
    slots::SubmissionSlots,
    task::OutcomeReports,
};

/// A configured submitter that is not running.
pub trait RunnableSubmitter<S: ScopeId> {
    /// The running submitter.
    type RunningSubmitter: RunningSubmitter<S>;

    /// Starts it.
    fn run(self) -> Result<Self::RunningSubmitter, InternalError>;
}

/// A submitter that is configured and not running: new from its builder, or stopped.
pub struct BatchRunnableSubmitter<S: ScopeId>(pub(crate) SubmitterParts<S>);

/// The parts of a submitter that outlive one run.
pub(crate) struct SubmitterParts<S: ScopeId> {
    pub(crate) queue: Queue<S>,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) observers: Observers<S>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) counters: SubmitterCounters,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) delayed: DelayedServices,
    /// Outcomes that the group observer did not accept in the last run.
    pub(crate) undelivered: Vec<SubmissionOutcome<S>>,
    /// `None`: each run has a runtime of its own.
    pub(crate) jobs: Option<Jobs>,
}

/// The observers of a submitter.
pub(crate) struct Observers<S: ScopeId> {
    pub(crate) single: Option<Arc<dyn SubmitterObserver<Id = S>>>,
    pub(crate) group: Option<Arc<dyn GroupObserver<Id = S>>>,
}

impl<S: ScopeId> Clone for Observers<S> {
    fn clone(&self) -> Self {
        Self { single: self.single.clone(), group: self.group.clone() }
    }
}

impl<S: ScopeId> BatchRunnableSubmitter<S> {
    /// Outcomes that the group observer did not accept before the last shutdown deadline. The next
    /// run delivers them first.
    pub fn undelivered(&self) -> &[SubmissionOutcome<S>] {
        &self.0.undelivered
    }

    /// A waker that makes the submitter poll its queue now.
    pub fn waker(&self) -> SubmitterWaker {
        self.0.waker.clone()
    }

    /// The services whose batches the ledger does not accept now.
    pub fn delayed_services(&self) -> DelayedServices {
        self.0.delayed.clone()
    }

    /// The submitter's counters.
    pub fn counters(&self) -> SubmitterCounters {
        self.0.counters.clone()
    }
}

impl<S: ScopeId> RunnableSubmitter<S> for BatchRunnableSubmitter<S> {
    type RunningSubmitter = BatchRunningSubmitter<S>;

    fn run(self) -> Result<BatchRunningSubmitter<S>, InternalError> {
        let SubmitterParts {
            queue,
            factory,
            observers,
            options,
            waker,
            counters,
            clock,
            admission,
            delayed,
            undelivered,
            jobs,
        } = self.0;
        let on = match &jobs {
            Some(jobs) => jobs.clone(),
            None => Jobs::with_workers(options.worker_threads)?,
        };
        let shutdown = ShutdownDeadline::new(options.drain_limit);
        let slots = SubmissionSlots::new(options.concurrency, options.group_limit);
        let (to_listener, messages) = mpsc::channel::<TaskMessage<S>>();
        let (to_runtime, submissions) = unbounded_channel();

        // If a thread cannot be started, the channels close and the threads before it end.
        let listener = Listener {
            messages,
            observer: observers.single.clone(),
            group: observers.group.clone().map(|observer| {
                let options = Arc::clone(&options);
                GroupNotifier::new(observer, options, shutdown.clone(), counters.clone())
            }),
            group_limit: options.group_limit,
            counters: counters.clone(),
            delayed: delayed.clone(),
            pause: GroupPause::default(),
        };
        // Observers may block.
        let listener = on.thread("submit-listener", shutdown.request_only(), move || {
            listener.run(undelivered)
        })?;

        let reports = OutcomeReports {
            listener: to_listener,
            admission: admission.clone(),
            recalls: factory.recalls.clone(),
        };
        let tasks = TaskRuntime {
            submissions,
            reports: reports.clone(),
            factory: Arc::clone(&factory),
            options: Arc::clone(&options),
            shutdown: shutdown.clone(),
            slots: slots.clone(),
            clock: Arc::clone(&clock),
        };
        let tasks = on.spawn_until("submit-tasks", shutdown.request_only(), tasks.run());

        let leader = Leader {
            queue,
            runtime: on.handle().clone(),
            submissions: to_runtime,
            reports,
            reports_start: observers.single.is_some(),
            options: Arc::clone(&options),
            waker: waker.clone(),
            shutdown: shutdown.clone(),
            slots,
            counters: counters.clone(),
            clock: Arc::clone(&clock),
        };
        // A queue may block.
        let leader = on.thread("submit-leader", shutdown.request_only(), move || leader.run())?;

        let running = SubmitterJobs { leader, tasks, listener };
        Ok(BatchRunningSubmitter {
            running: Some(running),
            shutdown,
            factory,
            observers,
            options,
            waker,
            counters,
            clock,
            admission,
            delayed,
            jobs,
        })
    }
}

impl<S: ScopeId> fmt::Debug for BatchRunnableSubmitter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRunnableSubmitter")
            .field("factory", &self.0.factory)
            .field("options", &self.0.options)
            .field("undelivered", &self.0.undelivered.len())
            .finish_non_exhaustive()
    }
}
