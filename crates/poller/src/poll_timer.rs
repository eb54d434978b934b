use std::time::Duration;

use tokio::time::Instant;

use crate::instant::after;

/// When to read due batches from the store: every interval, and at once while more are due.
#[derive(Debug)]
pub(crate) struct PollTimer {
    interval: Duration,
    next: Instant,
    /// The last read did not take every due batch.
    more: bool,
    /// A read now could find something that the last one did not.
    changed: bool,
}

impl PollTimer {
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now(), more: false, changed: false }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next_poll(now) <= now
    }

    pub(crate) fn next_poll(&self, now: Instant) -> Instant {
        if self.more && self.changed { now } else { self.next }
    }

    /// The end of the longest wait that begins now.
    pub(crate) fn latest_wake_up(&self, now: Instant) -> Instant {
        after(now, self.interval)
    }

    /// Records a read: whether more is due, and whether it found anything.
    pub(crate) fn polled(&mut self, now: Instant, more: bool, found: bool) {
        *self = Self { next: after(now, self.interval), more, changed: found, ..*self };
    }

    /// Records that a request ended, so that another batch may be due now.
    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[test]
    fn poll_is_due_at_the_interval_or_while_there_is_more() {
        let mut timer = PollTimer::new(INTERVAL);
        let now = Instant::now();
        assert!(timer.is_due(now));

        timer.polled(now, false, true);
        assert!(!timer.is_due(now) && timer.is_due(now + INTERVAL));
        timer.mark_changed();
        assert!(!timer.is_due(now), "there was no more");

        timer.polled(now, true, true);
        assert!(timer.is_due(now));
        timer.polled(now, true, false);
        assert!(!timer.is_due(now), "it would find the same");
        timer.mark_changed();
        assert!(timer.is_due(now));
    }
}
