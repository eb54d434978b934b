use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The wind-down of a submitter: all of its threads and tasks look here. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Drain(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: Duration,
    /// When it is to be over; `None` until it begins.
    deadline: watch::Sender<Option<Instant>>,
    lock: Mutex<()>,
    begun: Condvar,
}

impl Drain {
    /// A drain that will be over so long after it begins.
    pub(crate) fn new(limit: Duration) -> Self {
        let deadline = watch::Sender::new(None);
        Self(Arc::new(Inner { limit, deadline, lock: Mutex::default(), begun: Condvar::new() }))
    }

    /// Begins; a second time changes nothing.
    pub(crate) fn begin(&self) {
        let _lock = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.deadline.send_if_modified(|deadline| {
            let begins = deadline.is_none();
            deadline.get_or_insert_with(|| later(self.0.limit));
            begins
        });
        self.0.begun.notify_all();
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.deadline().is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Waits until it begins, and says when it is to be over.
    pub(crate) async fn begun(&self) -> Instant {
        let mut deadline = self.0.deadline.subscribe();
        let begun = deadline.wait_for(Option::is_some).await.ok().and_then(|deadline| *deadline);
        // The sender lives as long as `self`.
        begun.unwrap_or_else(Instant::now)
    }

    /// Waits until it is over.
    pub(crate) async fn over(&self) {
        sleep_until(self.begun().await).await;
    }

    /// Blocks for this long; less, if it would be over before, or begins without the caller having
    /// known.
    pub(crate) fn rest(&self, duration: Duration, known_to_have_begun: bool) {
        let lock = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.deadline().map(|end| end.saturating_duration_since(Instant::now()));
        let duration = left.map_or(duration, |left| left.min(duration));
        let keep_on = |(): &mut ()| known_to_have_begun || !self.has_begun();
        let rested = self.0.begun.wait_timeout_while(lock, duration, keep_on);
        drop(rested.unwrap_or_else(PoisonError::into_inner));
    }

    fn deadline(&self) -> Option<Instant> {
        *self.0.deadline.borrow()
    }
}

/// The moment so long after now, or one that nobody will live to see.
pub(crate) fn later(duration: Duration) -> Instant {
    const LONG: Duration = Duration::from_hours(24 * 365 * 30);
    let now = Instant::now();
    now.checked_add(duration.min(LONG)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_rest_ends_when_the_drain_begins() {
        let drain = Drain::new(Duration::from_hours(1));
        let resting = drain.clone();
        let rest = thread::spawn(move || resting.rest(Duration::MAX, false));
        drain.begin();
        rest.join().unwrap();
        assert!(drain.has_begun() && !drain.is_over());
    }

    #[test]
    fn a_rest_does_not_outlast_the_drain() {
        let drain = Drain::new(Duration::from_millis(1));
        drain.begin();
        drain.rest(Duration::from_hours(1), true);
        assert!(drain.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn beginning_twice_does_not_put_off_the_deadline() {
        let drain = Drain::new(Duration::from_secs(10));
        drain.begin();
        let deadline = drain.begun().await;
        tokio::time::advance(Duration::from_secs(9)).await;
        drain.begin();
        assert_eq!(drain.begun().await, deadline);
        drain.over().await;
        assert!(drain.is_over());
    }

    #[test]
    fn no_limit_is_too_long() {
        let drain = Drain::new(Duration::MAX);
        drain.begin();
        assert!(!drain.is_over());
    }
}
