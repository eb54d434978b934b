use std::{
    fmt,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use grid_batch_core::{
    GroupObserver, InternalError, RunnableSubmitter, ScopeId, SubmissionOutcome, SubmitterObserver,
};
use tokio::{runtime::Handle, sync::mpsc::unbounded_channel};

use crate::{
    BatchRunningSubmitter, SubmitterCounters, SubmitterOptions, SubmitterWaker,
    command::CommandFactory,
    drain::Drain,
    group::GroupTeller,
    leader::{Leader, Queue},
    listener::Listener,
    message::TaskMessage,
    places::Places,
    running::Threads,
    runtime::{self, TaskRuntime},
};

/// A submitter that is configured and not running: fresh from its builder, or stopped.
pub struct BatchRunnableSubmitter<S: ScopeId>(pub(crate) Parts<S>);

/// What a submitter is made of, whether it runs or not.
pub(crate) struct Parts<S: ScopeId> {
    pub(crate) queue: Queue<S>,
    pub(crate) factory: Arc<CommandFactory<S>>,
    pub(crate) observers: Observers<S>,
    pub(crate) options: Arc<SubmitterOptions>,
    pub(crate) waker: SubmitterWaker,
    pub(crate) counters: SubmitterCounters,
    /// What the group observer would not take in the last run.
    pub(crate) undelivered: Vec<SubmissionOutcome<S>>,
}

/// Who is told.
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
    /// Outcomes that the group observer would not take before the last stop had to end. The next
    /// run begins with them.
    pub fn undelivered(&self) -> &[SubmissionOutcome<S>] {
        &self.0.undelivered
    }

    /// Has the queue polled at once.
    pub fn waker(&self) -> SubmitterWaker {
        self.0.waker.clone()
    }

    /// Reads the submitter's numbers from anywhere.
    pub fn counters(&self) -> SubmitterCounters {
        self.0.counters.clone()
    }
}

impl<S: ScopeId> RunnableSubmitter<S> for BatchRunnableSubmitter<S> {
    type RunningSubmitter = BatchRunningSubmitter<S>;

    fn run(self) -> Result<BatchRunningSubmitter<S>, InternalError> {
        let Parts { queue, factory, observers, options, waker, counters, undelivered } = self.0;
        let drain = Drain::new(options.drain_limit);
        let places = Places::new(options.concurrency, options.group_limit);
        let (tell_listener, messages) = mpsc::channel::<TaskMessage<S>>();
        let (tell_runtime, submissions) = unbounded_channel();

        // If a thread cannot be started, the channels close, and those before it end.
        let listener = Listener {
            messages,
            observer: observers.single.clone(),
            group: observers.group.clone().map(|observer| {
                let options = Arc::clone(&options);
                GroupTeller::new(observer, options, drain.clone(), counters.clone())
            }),
            group_limit: options.group_limit,
            counters: counters.clone(),
        };
        let listener = spawn("submit-listener", move || listener.run(undelivered))?;

        let (runtime, handle) = start_runtime(TaskRuntime {
            submissions,
            listener: tell_listener.clone(),
            factory: Arc::clone(&factory),
            options: Arc::clone(&options),
            drain: drain.clone(),
            places: places.clone(),
        })?;

        let leader = Leader {
            queue,
            runtime: handle,
            submissions: tell_runtime,
            listener: tell_listener,
            tells_begin: observers.single.is_some(),
            options: Arc::clone(&options),
            waker: waker.clone(),
            drain: drain.clone(),
            places,
            counters: counters.clone(),
        };
        let leader = spawn("submit-leader", move || leader.run())?;

        let threads = Threads { leader, runtime, listener };
        Ok(BatchRunningSubmitter {
            threads: Some(threads),
            drain,
            factory,
            observers,
            options,
            waker,
            counters,
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

/// Starts the thread that owns the runtime, which is built there: it must not be dropped by a
/// caller who is in a runtime himself.
fn start_runtime<S: ScopeId>(
    tasks: TaskRuntime<S>,
) -> Result<(JoinHandle<()>, Handle), InternalError> {
    let workers = tasks.options.worker_threads;
    let (started, start) = mpsc::channel();
    let thread = spawn("submit-runtime", move || match runtime::build(workers) {
        Ok(runtime) => {
            // Whoever started this waits for it.
            let _ = started.send(Ok(runtime.handle().clone()));
            tasks.run(runtime);
        }
        Err(error) => drop(started.send(Err(error))),
    })?;
    let failed = "the submitter's runtime does not start";
    let handle = start
        .recv()
        .map_err(|error| InternalError::from_source(failed, error))?
        .map_err(|error| InternalError::from_source(failed, error))?;
    Ok((thread, handle))
}

fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, InternalError> {
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        InternalError::from_source(format!("the submitter's thread {name} does not start"), error)
    })
}
