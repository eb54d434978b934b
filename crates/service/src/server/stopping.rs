//! The end of a server, within a time limit.

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
use grid_batch_support::spawn_thread;

use super::StartError;

/// How one part is stopped. It may block for as long as the database does.
pub(super) struct Stop {
    pub(super) part: &'static str,
    pub(super) run: Box<dyn FnOnce() -> Result<(), InternalError> + Send>,
}

impl Stop {
    pub(super) fn new(
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

/// Stops the first parts at the same time, and the last ones after all of them, and waits for all of
/// that until the limit.
///
/// What has not ended by then goes on in threads of its own, in the same order.
pub(super) fn stop_within(
    limit: Duration,
    first: Vec<Stop>,
    last: Vec<Stop>,
) -> Result<(), StartError> {
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
            Err(StartError::StopLimit { limit, parts: parts.join(", ") })
        }
    }
}

/// The receiver does not wait any longer if the limit has passed.
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
