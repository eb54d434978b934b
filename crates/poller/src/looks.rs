use std::time::Duration;

use tokio::time::Instant;

/// When to look for batches that are due: at the interval, and at once while there is more.
#[derive(Debug)]
pub(crate) struct Looks {
    interval: Duration,
    next: Instant,
    /// The last look did not take everything.
    more: bool,
    /// A look now could find something that the last did not.
    changed: bool,
}

impl Looks {
    pub(crate) fn every(interval: Duration) -> Self {
        Self { interval, next: Instant::now(), more: false, changed: false }
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next(now) <= now
    }

    pub(crate) fn next(&self, now: Instant) -> Instant {
        if self.more && self.changed { now } else { self.next }
    }

    /// No wait is longer than until then.
    pub(crate) fn latest(&self, now: Instant) -> Instant {
        after(now, self.interval)
    }

    pub(crate) fn looked(&mut self, now: Instant, more: bool, found: bool) {
        *self = Self { next: after(now, self.interval), more, changed: found, ..*self };
    }

    /// An answer came: what is due now is other than before.
    pub(crate) fn something_changed(&mut self) {
        self.changed = true;
    }
}

/// The moment so long after this one, or one that is late enough for all.
pub(crate) fn after(now: Instant, duration: Duration) -> Instant {
    const LONG: Duration = Duration::from_hours(24 * 365);
    now + duration.min(LONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(1);

    #[test]
    fn a_look_is_due_at_the_interval_and_at_once_while_there_is_more() {
        let mut looks = Looks::every(INTERVAL);
        let now = Instant::now();
        assert!(looks.is_due(now));

        looks.looked(now, false, true);
        assert!(!looks.is_due(now) && looks.is_due(now + INTERVAL));
        looks.something_changed();
        assert!(!looks.is_due(now), "there was no more");

        looks.looked(now, true, true);
        assert!(looks.is_due(now));
        looks.looked(now, true, false);
        assert!(!looks.is_due(now), "it would find the same");
        looks.something_changed();
        assert!(looks.is_due(now));
    }
}
