mod blocking;
mod job;
mod records;
mod schedule;

use std::{fmt, num::NonZero, sync::Arc, thread, time::Duration};

use grid_batch_core::{BatchResult, InternalError};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    select,
};

pub use blocking::BlockingPool;
pub use job::Job;
pub use records::{JobReport, JobRuns};
pub use schedule::{JobTrigger, Next, Schedule, TimeShare};

use crate::{Shutdown, catch_panic, catch_panic_async, spawn_thread};
use records::JobRecords;

/// Runs the background work of a program: I/O on one runtime, and blocking work on a few threads.
///
/// The panic of a job is caught, logged with the job's name and [reported](Jobs::reports). Clones share the runtime,
/// which ends after the last clone and the last [`Job`].
#[derive(Clone)]
pub struct Jobs {
    handle: Handle,
    blocking: BlockingPool,
    records: JobRecords,
    /// `None`: the runtime belongs to the caller.
    runtime: Option<Arc<OwnRuntime>>,
}

/// The minimum number of threads for I/O. While one of them checks the signatures of a small batch, answers of the
/// ledger must not wait.
const LEAST_WORKERS: usize = 4;

impl Jobs {
    /// Starts a runtime for the jobs, with a thread for I/O for each core.
    pub fn start() -> Result<Self, InternalError> {
        let cores = thread::available_parallelism().map_or(LEAST_WORKERS, NonZero::get);
        Self::with_workers(cores.max(LEAST_WORKERS))
    }

    /// Starts a runtime with this many threads for I/O.
    pub fn with_workers(workers: usize) -> Result<Self, InternalError> {
        // Adapters may need any of tokio's drivers, so all that were compiled in are enabled.
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("jobs")
            .thread_keep_alive(IDLE_THREAD_LIMIT)
            .enable_all()
            .build()
            .map_err(|error| InternalError::from_source("cannot start the runtime", error))?;
        let jobs = Self::on_runtime(runtime.handle().clone());
        Ok(Self { runtime: Some(Arc::new(OwnRuntime(Some(runtime)))), ..jobs })
    }

    /// Runs jobs on a multi-threaded runtime, which the caller must keep until they have ended.
    pub fn on_runtime(handle: Handle) -> Self {
        let blocking = BlockingPool::new(handle.clone());
        Self { handle, blocking, records: JobRecords::default(), runtime: None }
    }

    /// The runtime.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The threads for blocking work.
    pub fn blocking(&self) -> &BlockingPool {
        &self.blocking
    }

    /// A report about each job that was not stopped, ordered by name.
    pub fn reports(&self) -> Vec<JobReport> {
        self.records.reports()
    }

    /// Does work that may block once per `interval`, first after one `interval`.
    pub fn every(
        &self,
        name: &'static str,
        interval: Duration,
        mut work: impl FnMut() -> BatchResult<()> + Send + 'static,
    ) -> Job {
        self.repeat(name, Schedule::every(interval), move || work().map(|()| Next::AfterInterval))
    }

    /// Does work that may block, at the times of this schedule. The first of several failures is logged, and so is the
    /// first success after them.
    pub fn repeat(
        &self,
        name: &'static str,
        schedule: Schedule,
        mut work: impl FnMut() -> BatchResult<Next> + Send + 'static,
    ) -> Job {
        let (blocking, record) = (self.blocking.clone(), self.records.add(name));
        let shutdown = Shutdown::new();
        let stopped = shutdown.clone();
        let running = record.clone();
        self.start_task(record, shutdown, async move {
            let mut pause = schedule.first();
            loop {
                let due = tokio::time::Instant::now() + pause;
                let place = select! {
                    biased;
                    () = stopped.requested() => return,
                    place = async {
                        schedule.wait(due).await;
                        blocking.acquire().await
                    } => place,
                };
                let run = running.started(due.into_std());
                let done = blocking.run_in(place, move || {
                    let result = catch_panic(&mut work);
                    (work, result)
                });
                let result = match done.await {
                    Ok((returned, result)) => {
                        work = returned;
                        result.unwrap_or_else(|panic| Err(panic.into()))
                    }
                    // The runtime ends.
                    Err(_) => return,
                };
                run.ended(result.as_ref().err());
                pause = schedule.pause_after(&result);
            }
        })
    }

    /// Runs a future until it ends or the job is stopped, which drops it.
    pub fn spawn(
        &self,
        name: &'static str,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Job {
        let shutdown = Shutdown::new();
        let stopped = shutdown.clone();
        self.spawn_until(name, shutdown, async move {
            select! {
                biased;
                () = stopped.requested() => {}
                () = future => {}
            }
        })
    }

    /// Runs a future that ends by itself after this shutdown was requested.
    pub fn spawn_until<T: Send + 'static>(
        &self,
        name: &'static str,
        shutdown: Shutdown,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Job<T> {
        self.start_task(self.records.add(name), shutdown, future)
    }

    fn start_task<T: Send + 'static>(
        &self,
        record: records::JobRecord,
        shutdown: Shutdown,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Job<T> {
        let (job, end) = Job::new(record, shutdown, self.runtime.clone());
        self.handle.spawn(async move { end.send(catch_panic_async(future).await) });
        job
    }

    /// Runs a job on its own thread, if it must never wait behind other work or blocks most of the time. It ends by
    /// itself after this shutdown was requested.
    pub fn thread<T: Send + 'static>(
        &self,
        name: &'static str,
        shutdown: Shutdown,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Job<T>, InternalError> {
        let (job, end) = Job::new(self.records.add(name), shutdown, self.runtime.clone());
        spawn_thread(name, move || end.send(catch_panic(run)))?;
        Ok(job)
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("reports", &self.reports()).finish_non_exhaustive()
    }
}

/// How long an idle thread for blocking work is kept. Threads take turns, so with a long limit, jobs that run
/// occasionally would keep all of them forever.
const IDLE_THREAD_LIMIT: Duration = Duration::from_millis(100);

/// A runtime that ends when its last user is dropped.
#[derive(Debug)]
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.0.take() else { return };
        if Handle::try_current().is_ok() {
            // Waiting is not allowed within a runtime.
            return runtime.shutdown_background();
        }
        end_tasks(&runtime);
        runtime.shutdown_timeout(LEFTOVERS);
    }
}

/// The time limit for work that an adapter may have left running, such as a name lookup or a stream that closes its
/// connection.
const LEFTOVERS: Duration = Duration::from_millis(500);

fn end_tasks(runtime: &Runtime) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(2);
    let metrics = runtime.metrics();
    runtime.block_on(async {
        let ended = async {
            while metrics.num_alive_tasks() > 0 {
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        };
        // An error means that the time is over, for example because a server does not answer.
        let _ = tokio::time::timeout(LEFTOVERS, ended).await;
    });
}

#[cfg(test)]
mod tests;
