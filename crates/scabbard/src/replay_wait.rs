//! Waiting for the replay of earlier events before something is sent.

use std::time::Duration;

use grid_batch_core::MonotonicTime;

/// When the event subscriptions of a service were opened.
///
/// A restarted node has forgotten all statuses. Only the replay shows which batches were committed before, so a POST
/// waits for it. The end of the replay is not marked.
#[derive(Default)]
pub(crate) struct ReplayWait {
    phase: Phase,
    /// When this phase began, unless the last subscription broke.
    since: MonotonicTime,
    /// Since when a POST has waited for this subscription and those before it.
    post_waits_since: Option<MonotonicTime>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    NotSubscribed,
    /// The first subscription is being opened.
    Opening,
    /// It was opened and did not break, but may have been given up since.
    Opened,
    /// The last subscription broke, or could not be opened.
    Broken,
}

impl ReplayWait {
    /// How long a replay may take.
    const REPLAY_TIME: Duration = Duration::from_millis(300);
    /// How long a POST waits if subscriptions break before they are replayed.
    const LONGEST_WAIT: Duration = Duration::from_secs(2);
    /// How long a POST waits for a subscription that broke. It is longer than the time until a subscription is opened
    /// again after the node is back.
    const LONGEST_WAIT_WHILE_BROKEN: Duration = Duration::from_secs(45);
    /// The time after which a POST that waits for a subscription is tried again.
    const RETRY_AFTER: Duration = Duration::from_millis(500);

    /// Records that a subscription is being opened.
    pub(crate) fn opening(&mut self, now: MonotonicTime) {
        if self.phase == Phase::NotSubscribed {
            (self.phase, self.since) = (Phase::Opening, now);
        }
    }

    /// Records that the subscription broke or could not be opened. Its node may have restarted, and may have forgotten
    /// its commits before the next one is open.
    pub(crate) fn broken(&mut self) {
        self.phase = Phase::Broken;
    }

    /// Records that a subscription was opened. If the previous one was given up rather than broken, its node has not
    /// forgotten statuses.
    pub(crate) fn opened(&mut self, now: MonotonicTime) {
        if self.phase != Phase::Opened {
            (self.phase, self.since) = (Phase::Opened, now);
        }
    }

    /// How long a POST to the service must wait.
    pub(crate) fn remaining(&mut self, now: MonotonicTime) -> Option<Duration> {
        let replay_time = Self::REPLAY_TIME.saturating_sub(now.since(self.since));
        let (remaining, limit) = match self.phase {
            Phase::NotSubscribed => return None,
            Phase::Broken => (Self::RETRY_AFTER, Self::LONGEST_WAIT_WHILE_BROKEN),
            Phase::Opening | Phase::Opened => (replay_time, Self::LONGEST_WAIT),
        };
        if remaining.is_zero() {
            self.post_waits_since = None;
            return None;
        }
        let waits_since = *self.post_waits_since.get_or_insert(now);
        (now.since(waits_since) < limit).then_some(remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(millis))
    }

    fn remaining(wait: &mut ReplayWait, now: u64) -> Option<u128> {
        wait.remaining(at(now)).map(|wait| wait.as_millis())
    }

    #[test]
    fn post_waits_for_each_replay() {
        let mut wait = ReplayWait::default();
        assert_eq!(remaining(&mut wait, 0), None, "nothing is subscribed to");
        wait.opening(at(1_000));
        assert_eq!(remaining(&mut wait, 1_100), Some(200));
        wait.opened(at(1_200));
        assert_eq!(
            [1_200, 1_499, 1_500].map(|now| remaining(&mut wait, now)),
            [Some(300), Some(1), None]
        );
        wait.opening(at(9_000));
        wait.opened(at(9_000));
        assert_eq!(remaining(&mut wait, 9_000), None, "the one before was given up");
        wait.broken();
        wait.opened(at(9_000));
        assert_eq!(remaining(&mut wait, 9_000), Some(300));
    }

    #[test]
    fn post_waits_for_a_subscription_that_broke() {
        let mut wait = ReplayWait::default();
        wait.opened(at(0));
        assert_eq!(remaining(&mut wait, 1_000), None);
        wait.broken();
        assert_eq!([2_000, 46_999].map(|now| remaining(&mut wait, now)), [Some(500); 2]);
        assert_eq!(remaining(&mut wait, 47_000), None, "it may never be opened again");
        wait.opened(at(50_000));
        assert_eq!(remaining(&mut wait, 50_300), None);
        wait.broken();
        assert_eq!(remaining(&mut wait, 60_000), Some(500));
    }

    #[test]
    fn post_waits_only_so_long_for_broken_subscriptions() {
        let mut wait = ReplayWait::default();
        let reopen = |wait: &mut ReplayWait, now| {
            wait.broken();
            wait.opened(at(now));
        };
        wait.opened(at(0));
        for now in (0..2_000).step_by(200) {
            reopen(&mut wait, now);
            assert_eq!(remaining(&mut wait, now), Some(300));
        }
        reopen(&mut wait, 2_000);
        assert_eq!(remaining(&mut wait, 2_000), None);
        assert_eq!(remaining(&mut wait, 2_300), None);
        reopen(&mut wait, 3_000);
        assert_eq!(remaining(&mut wait, 3_000), Some(300));
    }
}
