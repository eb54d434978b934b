use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use grid_batch_core::InternalError;
use thiserror::Error;

use crate::{Job, ShutdownHandle, spawn_thread};

/// The parts of a program in the order in which they are stopped, within a time limit. Dropping it drops them.
#[derive(Default)]
pub struct Stops {
    /// The parts that drain. They do so at the same time.
    first: Vec<Stop>,
    /// The parts that stop after the others have ended. Until then, no other instance may work on the services.
    last: Vec<Stop>,
}

/// Why the parts did not stop cleanly.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StopError {
    /// Some did not stop in time.
    #[error("{parts} did not end within {limit:?}")]
    Limit {
        /// The time limit.
        limit: Duration,
        /// The parts that did not end, separated by commas.
        parts: String,
    },
    /// One did not stop cleanly.
    #[error(transparent)]
    Part(#[from] InternalError),
}

/// How one part is stopped. It may block for as long as the database does.
struct Stop {
    part: &'static str,
    run: Box<dyn FnOnce() -> Result<(), InternalError> + Send>,
}

impl Stops {
    /// Adds a part that drains.
    pub fn first(&mut self, name: &'static str, part: impl ShutdownHandle + Send + 'static) {
        self.first.push(Stop::new(name, || part.wait_for_shutdown()));
    }

    /// Adds jobs that stop at the same time as the parts that drain.
    pub fn first_jobs<T: Send + 'static>(&mut self, jobs: impl IntoIterator<Item = Job<T>>) {
        jobs.into_iter().for_each(|job| self.first(job.name(), job));
    }

    /// Adds jobs that stop after the parts that drain.
    pub fn last_jobs(&mut self, jobs: impl IntoIterator<Item = Job>) {
        self.last.extend(jobs.into_iter().map(|job| Stop::new(job.name(), || job.join())));
    }

    /// Adds jobs that only show something. Stopping waits only briefly for them, because they may be waiting for the
    /// database.
    pub fn last_views(&mut self, jobs: impl IntoIterator<Item = Job>) {
        let stop = |job: Job| {
            Stop::new(job.name(), || {
                job.stop_within(VIEW_LIMIT);
                Ok(())
            })
        };
        self.last.extend(jobs.into_iter().map(stop));
    }

    /// Adds a part that is dropped after the parts that drain have stopped.
    pub fn last_dropped(&mut self, name: &'static str, part: impl Send + 'static) {
        self.last.push(Stop::new(name, || {
            drop(part);
            Ok(())
        }));
    }

    /// Stops all within this limit.
    pub fn stop_within(self, limit: Duration) -> Result<(), StopError> {
        stop_within(limit, self.first, self.last)
    }
}

/// The time limit for ending a view. If the database answers, its connection is closed within this time.
const VIEW_LIMIT: Duration = Duration::from_secs(1);

impl Stop {
    fn new(
        part: &'static str,
        run: impl FnOnce() -> Result<(), InternalError> + Send + 'static,
    ) -> Self {
        Self { part, run: Box::new(run) }
    }
}

/// The parts that have not ended yet.
#[derive(Debug, Clone, Default)]
struct Unfinished(Arc<Mutex<BTreeSet<&'static str>>>);

impl Unfinished {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the first parts at the same time and the last ones after all of them, and waits up to the limit.
///
/// Parts that have not ended by then continue to stop in their own threads, in the same order.
fn stop_within(limit: Duration, first: Vec<Stop>, last: Vec<Stop>) -> Result<(), StopError> {
    let unfinished = Unfinished::default();
    unfinished.lock().extend(first.iter().chain(&last).map(|stop| stop.part));
    let (ended, end) = channel();
    let remaining = unfinished.clone();
    spawn_thread("stop", move || {
        let results = [run_all(first, &remaining), run_all(last, &remaining)];
        report(&ended, results.into_iter().collect());
    })?;
    match end.recv_timeout(limit) {
        Ok(result) => Ok(result?),
        Err(_) => {
            let parts: Vec<&str> = unfinished.lock().iter().copied().collect();
            Err(StopError::Limit { limit, parts: parts.join(", ") })
        }
    }
}

/// An error means that the limit has passed and the receiver is gone.
fn report(ended: &Sender<Result<(), InternalError>>, result: Result<(), InternalError>) {
    let _ = ended.send(result);
}

/// Runs each on a thread of its own, and waits for all.
fn run_all(stops: Vec<Stop>, unfinished: &Unfinished) -> Result<(), InternalError> {
    let threads: Vec<_> = stops.into_iter().map(|stop| start(stop, unfinished.clone())).collect();
    // Without `collect`, an error would end the wait for the others.
    let results: Vec<_> = threads.into_iter().map(|thread| join(thread?)).collect();
    results.into_iter().collect()
}

type StopThread = JoinHandle<Result<(), InternalError>>;

fn start(stop: Stop, unfinished: Unfinished) -> Result<StopThread, InternalError> {
    spawn_thread("stop-part", move || {
        let result = (stop.run)();
        unfinished.lock().remove(stop.part);
        result
    })
}

fn join(thread: StopThread) -> Result<(), InternalError> {
    thread.join().unwrap_or_else(|_| Err(InternalError::new("a thread that stops a part panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn last_parts_stop_after_the_first() {
        let (sender, receiver) = channel();
        let send = |part: &'static str| {
            let sender = sender.clone();
            Stop::new(part, move || {
                sender.send(part).unwrap();
                Ok(())
            })
        };
        stop_within(LONG, vec![send("a")], vec![send("b")]).unwrap();
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn parts_that_do_not_end_in_time_are_named() {
        let (release, released) = channel::<()>();
        let blocked = Stop::new("poller", move || {
            let _ = released.recv();
            Ok(())
        });
        let done = Stop::new("events", || Ok(()));
        let last = Stop::new("claims", || Ok(()));
        let limit = Duration::from_millis(200);
        let error = stop_within(limit, vec![blocked, done], vec![last]).unwrap_err().to_string();
        assert!(error.contains("claims, poller did not end"), "{error}");
        drop(release);
    }

    #[test]
    fn error_of_a_part_is_returned() {
        let failed = Stop::new("events", || Err(InternalError::new("broken")));
        let error = stop_within(LONG, vec![failed], Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "broken");
    }
}
