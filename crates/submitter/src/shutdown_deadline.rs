use std::{
    sync::{Arc, Condvar, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use grid_batch_support::{Shutdown, lock};
use tokio::time::{Instant, sleep_until};

/// A shutdown request and the deadline by which work in flight must end. Clones share one request.
#[derive(Debug, Clone)]
pub(crate) struct ShutdownDeadline(Arc<State>);

#[derive(Debug)]
struct State {
    /// The time from the request to the deadline.
    drain_limit: Duration,
    deadline: OnceLock<Instant>,
    shutdown: Shutdown,
    /// Guards the request against a thread that is about to sleep.
    lock: Mutex<()>,
    requested: Condvar,
}

impl ShutdownDeadline {
    /// No shutdown is requested yet. The deadline will be `drain_limit` after the request.
    pub(crate) fn new(drain_limit: Duration) -> Self {
        Self(Arc::new(State {
            drain_limit,
            deadline: OnceLock::new(),
            shutdown: Shutdown::new(),
            lock: Mutex::default(),
            requested: Condvar::new(),
        }))
    }

    /// Requests the shutdown. A second request changes nothing.
    pub(crate) fn request(&self) {
        let _lock = lock(&self.0.lock);
        self.0.deadline.get_or_init(|| deadline_after(self.0.drain_limit));
        self.0.shutdown.request();
        self.0.requested.notify_all();
    }

    /// The request, without its deadline.
    pub(crate) fn request_only(&self) -> Shutdown {
        self.0.shutdown.clone()
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.shutdown.is_requested()
    }

    /// Whether the deadline has passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.0.deadline.get().is_some_and(|deadline| *deadline <= Instant::now())
    }

    /// Waits until the shutdown is requested.
    pub(crate) async fn requested(&self) {
        self.0.shutdown.requested().await;
    }

    /// Waits until the shutdown is requested and its deadline has passed.
    pub(crate) async fn passed(&self) {
        self.requested().await;
        if let Some(deadline) = self.0.deadline.get() {
            sleep_until(*deadline).await;
        }
    }

    /// Blocks the thread for `duration`, but not past the deadline.
    ///
    /// A request that the caller does not know of yet (`known_request` is false) ends the wait.
    pub(crate) fn sleep(&self, duration: Duration, known_request: bool) {
        let guard = lock(&self.0.lock);
        let left = self.0.deadline.get().map(|end| end.saturating_duration_since(Instant::now()));
        let duration = left.map_or(duration, |left| left.min(duration));
        let keep_waiting = |(): &mut ()| known_request || !self.is_requested();
        let waited = self.0.requested.wait_timeout_while(guard, duration, keep_waiting);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The instant `limit` from now. A limit that would overflow becomes 30 years.
fn deadline_after(limit: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_hours(24 * 365 * 30);
    let now = Instant::now();
    now.checked_add(limit.min(LONGEST)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn request_ends_a_sleep() {
        let shutdown = ShutdownDeadline::new(Duration::from_hours(1));
        let sleeping = shutdown.clone();
        let thread = thread::spawn(move || sleeping.sleep(Duration::MAX, false));
        shutdown.request();
        thread.join().unwrap();
        assert!(shutdown.is_requested() && !shutdown.has_passed());
    }

    #[test]
    fn sleep_ends_at_the_deadline() {
        let shutdown = ShutdownDeadline::new(Duration::from_millis(1));
        shutdown.request();
        shutdown.sleep(Duration::from_hours(1), true);
        assert!(shutdown.has_passed());
    }

    #[tokio::test(start_paused = true)]
    async fn second_request_does_not_move_the_deadline() {
        let shutdown = ShutdownDeadline::new(Duration::from_secs(10));
        let requested_at = Instant::now();
        shutdown.request();
        tokio::time::advance(Duration::from_secs(9)).await;
        shutdown.request();
        shutdown.passed().await;
        assert!(shutdown.has_passed());
        assert_eq!(requested_at.elapsed().as_secs(), 10);
    }

    #[test]
    fn longest_limit_does_not_overflow() {
        let shutdown = ShutdownDeadline::new(Duration::MAX);
        shutdown.request();
        assert!(!shutdown.has_passed());
    }
}
