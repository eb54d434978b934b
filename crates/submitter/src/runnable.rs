use std::{
    fmt,
    sync::{Arc, mpsc},
};

use grid_batch_core::{Admission, Clock, GroupObserver, InternalError, ScopeId, SubmissionOutcome};
use grid_batch_support::{GroupPause, RuntimeThread, spawn_thread};
use tokio::{runtime::Handle, sync::mpsc::unbounded_channel};

use crate::{
    BatchRunningSubmitter, DelayedServices, RunningSubmitter, SubmitterCounters, SubmitterObserver,
    SubmitterOptions, SubmitterWaker,
    command::CommandFactory,
    group_notifier::GroupNotifier,
    leader::{Leader, NextDue, Queue},
    listener::Listener,
    running::Threads,
    runtime::{TaskRuntime, build_runtime},
    shutdown_deadline::ShutdownDeadline,
    slots::SubmissionSlots,
    task::{OutcomeReports, TaskMessage},
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
    pub(crate) next_due: NextDue,
    pub(crate) counters: SubmitterCounters,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) admission: Option<Arc<dyn Admission>>,
    pub(crate) delayed: DelayedServices,
    /// Outcomes that the group observer did not accept in the last run.
    pub(crate) undelivered: Vec<SubmissionOutcome<S>>,
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
            next_due,
            counters,
            clock,
            admission,
            delayed,
            undelivered,
        } = self.0;
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
        let listener = spawn_thread("submit-listener", move || listener.run(undelivered))?;

        let reports = OutcomeReports {
            listener: to_listener,
            admission: admission.clone(),
            work: factory.work.clone(),
        };
        let (runtime, handle) = start_runtime(TaskRuntime {
            submissions,
            reports: reports.clone(),
            factory: Arc::clone(&factory),
            options: Arc::clone(&options),
            shutdown: shutdown.clone(),
            slots: slots.clone(),
            clock: Arc::clone(&clock),
        })?;

        let leader = Leader {
            queue,
            runtime: handle,
            submissions: to_runtime,
            reports,
            reports_start: observers.single.is_some(),
            options: Arc::clone(&options),
            waker: waker.clone(),
            next_due: Arc::clone(&next_due),
            shutdown: shutdown.clone(),
            slots,
            counters: counters.clone(),
            clock: Arc::clone(&clock),
        };
        let leader = spawn_thread("submit-leader", move || leader.run())?;

        let threads = Threads { leader, runtime, listener };
        Ok(BatchRunningSubmitter {
            threads: Some(threads),
            shutdown,
            factory,
            observers,
            options,
            waker,
            next_due,
            counters,
            clock,
            admission,
            delayed,
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

/// Starts the thread of the runtime, and returns a handle of the runtime for the leader.
fn start_runtime<S: ScopeId>(
    tasks: TaskRuntime<S>,
) -> Result<(RuntimeThread<()>, Handle), InternalError> {
    let workers = tasks.options.worker_threads;
    let mut handle = None;
    let build = || {
        let runtime = build_runtime(workers)?;
        handle = Some(runtime.handle().clone());
        Ok(runtime)
    };
    let thread = RuntimeThread::start("submit-runtime", build, move |runtime| tasks.run(runtime))?;
    let handle = handle.ok_or_else(|| InternalError::new("the submitter's runtime was not built"));
    Ok((thread, handle?))
}
