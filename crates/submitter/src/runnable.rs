use std::{
    fmt,
    sync::{Arc, mpsc},
    time::Instant,
};

use grid_batch_core::ledger::{GroupObserver, SubmissionOutcome};
use grid_batch_core::queue::Admission;
use grid_batch_core::{Clock, InternalError, ScopeId};
use grid_batch_support::{GroupPause, Jobs};
use tokio::sync::mpsc::unbounded_channel;

use crate::{
    BatchRunningSubmitter, DelayedServices, RunningSubmitter, SubmitterCounters, SubmitterObserver,
    SubmitterOptions, SubmitterWaker,
    command::CommandFactory,
    group_notifier::GroupNotifier,
    leader::{Leader, NextDue, Queue},
    listener::Listener,
    running::SubmitterJobs,
    shutdown_deadline::ShutdownDeadline,
    slots::SubmissionSlots,
    task::{OutcomeReports, TaskMessage, TaskRuntime},
};

/// A configured submitter that is not running.
pub trait RunnableSubmitter<S: ScopeId> {
    /// The running submitter.
    type RunningSubmitter: RunningSubmitter<S>;

    /// Starts it.
    fn run(self) -> Result<Self::RunningSubmitter, InternalError>;
}

/// A submitter that is configured and not running: new from its builder, or stopped.
pub struct BatchRunnableSubmitter<S: ScopeId> {
    pub(crate) parts: Arc<SubmitterParts<S>>,
    pub(crate) queue: Queue<S>,
    /// Outcomes that the group observer did not accept in the last run.
    pub(crate) undelivered: Vec<SubmissionOutcome<S>>,
}

/// The parts of a submitter that outlive one run.
pub(crate) struct SubmitterParts<S: ScopeId> {
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) observers: Observers<S>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) next_due: NextDue,
    pub(crate) counters: SubmitterCounters,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) delayed: DelayedServices,
    /// `None`: each run has a runtime of its own.
    pub(crate) jobs: Option<Jobs>,
}

/// The observers of a submitter.
pub(crate) struct Observers<S: ScopeId> {
    pub(crate) single: Option<Arc<dyn SubmitterObserver<Id = S>>>,
    pub(crate) group: Option<Arc<dyn GroupObserver<Id = S>>>,
}

impl<S: ScopeId> BatchRunnableSubmitter<S> {
    /// Outcomes that the group observer did not accept before the last shutdown deadline. The next
    /// run delivers them first.
    pub fn undelivered(&self) -> &[SubmissionOutcome<S>] {
        &self.undelivered
    }

    /// A waker that makes the submitter poll its queue now.
    pub fn waker(&self) -> SubmitterWaker {
        self.parts.waker.clone()
    }

    /// The services whose batches the ledger does not accept now.
    pub fn delayed_services(&self) -> DelayedServices {
        self.parts.delayed.clone()
    }

    /// The submitter's counters.
    pub fn counters(&self) -> SubmitterCounters {
        self.parts.counters.clone()
    }
}

impl<S: ScopeId> RunnableSubmitter<S> for BatchRunnableSubmitter<S> {
    type RunningSubmitter = BatchRunningSubmitter<S>;

    fn run(self) -> Result<BatchRunningSubmitter<S>, InternalError> {
        let Self { parts, queue, undelivered } = self;
        let options = &parts.options;
        let jobs = match &parts.jobs {
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
            observer: parts.observers.single.clone(),
            group: parts.observers.group.clone().map(|observer| {
                let (options, counters) = (Arc::clone(options), parts.counters.clone());
                GroupNotifier::new(observer, options, shutdown.clone(), counters)
            }),
            group_limit: options.group_limit,
            counters: parts.counters.clone(),
            delayed: parts.delayed.clone(),
            next_look: Instant::now(),
            table: parts.factory.table.clone(),
            pause: GroupPause::LONG,
        };
        // Observers may block.
        let listener = jobs.thread("submit-listener", shutdown.request_only(), move || {
            listener.run(undelivered)
        })?;

        let reports = OutcomeReports {
            listener: to_listener,
            admission: parts.admission.clone(),
            table: parts.factory.table.clone(),
        };
        let tasks = TaskRuntime {
            parts: Arc::clone(&parts),
            submissions,
            reports: reports.clone(),
            shutdown: shutdown.clone(),
            slots: slots.clone(),
        };
        let tasks = jobs.spawn_until("submit-tasks", shutdown.request_only(), tasks.run());

        let leader = Leader {
            parts: Arc::clone(&parts),
            queue,
            runtime: jobs.handle().clone(),
            submissions: to_runtime,
            reports,
            shutdown: shutdown.clone(),
            slots,
        };
        // A queue may block.
        let leader = jobs.thread("submit-leader", shutdown.request_only(), move || leader.run())?;

        let running = Some(SubmitterJobs { leader, tasks, listener });
        Ok(BatchRunningSubmitter { parts, shutdown, running })
    }
}

impl<S: ScopeId> fmt::Debug for BatchRunnableSubmitter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRunnableSubmitter")
            .field("factory", &self.parts.factory)
            .field("options", &self.parts.options)
            .field("undelivered", &self.undelivered.len())
            .finish_non_exhaustive()
    }
}
