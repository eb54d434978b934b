use std::time::Duration;

use tokio::time::Instant;

/// Finds out whether a connected stream is silent, which means that batches are committed but no event reports them.
///
/// A node may stop sending events to all clients, keep their websockets open and answer their pings. Only the commits
/// themselves show that. One event reports all commits up to it, and may arrive a little before or after them.
#[derive(Debug)]
pub(crate) struct SilenceCheck {
    options: SilenceOptions,
    connected_at: Option<Instant>,
    last_event: Option<Instant>,
    last_commit: Option<Instant>,
    /// Whether a batch was accepted since the stream was connected, so that an event must report its commit.
    expects_event: bool,
    /// The commits in a row without an event.
    missed: u32,
    last_missed: Option<Instant>,
    is_silent: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SilenceOptions {
    /// How long before or after a commit its event may arrive.
    pub(crate) tolerance: Duration,
    /// The number of commits without an event after which the stream is silent.
    pub(crate) limit: u32,
}

/// What an event or a commit has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilenceChange {
    None,
    /// The stream is silent from now on.
    Began,
    /// Events report commits again.
    Ended,
}

impl SilenceCheck {
    pub(crate) fn new(options: SilenceOptions) -> Self {
        Self {
            options,
            connected_at: None,
            last_event: None,
            last_commit: None,
            expects_event: false,
            missed: 0,
            last_missed: None,
            is_silent: false,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected_at.is_some()
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Records that the stream was connected. A silent stream stays silent until an event reports a commit.
    pub(crate) fn connected(&mut self, now: Instant) {
        let Self { options, is_silent, .. } = *self;
        *self = Self { connected_at: Some(now), is_silent, ..Self::new(options) };
    }

    pub(crate) fn disconnected(&mut self) {
        self.connected_at = None;
    }

    pub(crate) fn accepted(&mut self) {
        self.expects_event = self.is_connected();
    }

    pub(crate) fn event(&mut self, now: Instant) -> SilenceChange {
        // Even a node that sends nothing else first sends a new client the earlier events.
        if self.is_recent(self.connected_at, now) {
            return SilenceChange::None;
        }
        self.last_event = Some(now);
        self.missed = 0;
        if self.is_recent(self.last_commit, now) { self.end() } else { SilenceChange::None }
    }

    pub(crate) fn committed(&mut self, now: Instant) -> SilenceChange {
        // Batches that were committed before the connection are not reported by events.
        if !std::mem::take(&mut self.expects_event) || self.is_recent(self.connected_at, now) {
            return SilenceChange::None;
        }
        self.last_commit = Some(now);
        if self.is_recent(self.last_event, now) {
            return self.end();
        }
        // One earlier event may have covered several commits that are reported together.
        if self.is_recent(self.last_missed, now) {
            return SilenceChange::None;
        }
        self.last_missed = Some(now);
        self.missed += 1;
        if self.is_silent || self.missed < self.options.limit {
            return SilenceChange::None;
        }
        self.is_silent = true;
        SilenceChange::Began
    }

    fn end(&mut self) -> SilenceChange {
        if std::mem::take(&mut self.is_silent) { SilenceChange::Ended } else { SilenceChange::None }
    }

    fn is_recent(&self, time: Option<Instant>, now: Instant) -> bool {
        time.is_some_and(|time| now.saturating_duration_since(time) <= self.options.tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::{SilenceChange::*, *};

    const SECOND: Duration = Duration::from_secs(1);

    /// A check whose stream was connected at second 0, and a function that returns the instant of a second.
    fn connected() -> (SilenceCheck, impl Fn(u32) -> Instant) {
        let origin = Instant::now();
        let mut check = SilenceCheck::new(SilenceOptions { tolerance: SECOND, limit: 3 });
        check.connected(origin);
        (check, move |seconds| origin + SECOND * seconds)
    }

    fn commit(check: &mut SilenceCheck, now: Instant) -> SilenceChange {
        check.accepted();
        check.committed(now)
    }

    #[test]
    fn commits_without_an_event_show_silence() {
        let (mut check, at) = connected();
        let changes = [10, 20, 30, 40].map(|seconds| commit(&mut check, at(seconds)));
        assert_eq!(changes, [None, None, Began, None]);
    }

    #[test]
    fn event_between_commits_starts_the_count_anew() {
        let (mut check, at) = connected();
        for seconds in (10..100).step_by(30) {
            assert_eq!(commit(&mut check, at(seconds)), None);
            assert_eq!(commit(&mut check, at(seconds + 10)), None);
            assert_eq!(check.event(at(seconds + 20)), None);
        }
    }

    #[test]
    fn commits_that_are_reported_together_count_once() {
        let (mut check, at) = connected();
        for _ in 0..20 {
            assert_eq!(commit(&mut check, at(10)), None);
        }
        assert_eq!(check.missed, 1);
    }

    #[test]
    fn commits_of_earlier_batches_do_not_count() {
        let (mut check, at) = connected();
        check.accepted();
        check.connected(at(5));
        for seconds in 10..50 {
            assert_eq!(check.committed(at(seconds)), None);
        }
        check.disconnected();
        check.accepted();
        check.connected(at(60));
        assert_eq!(check.committed(at(70)), None);
        assert_eq!(check.missed, 0);
    }

    #[test]
    fn silence_ends_when_an_event_reports_a_commit() {
        for event_is_first in [true, false] {
            let (mut check, at) = connected();
            for seconds in [10, 20, 30] {
                commit(&mut check, at(seconds));
            }
            check.connected(at(40));
            assert_eq!(check.event(at(40)), None, "the newest earlier block");
            assert_eq!(check.event(at(50)), None, "no commit");
            assert!(check.is_silent());
            let change = if event_is_first {
                [check.event(at(60)), commit(&mut check, at(61))]
            } else {
                [commit(&mut check, at(60)), check.event(at(61))]
            };
            assert_eq!(change, [None, Ended]);
            assert!(!check.is_silent());
        }
    }
}
