//! Waiting for the replay of earlier events before something is sent.

use std::{sync::Mutex, time::Duration};

use grid_batch_core::{MonotonicTime, ServiceId};
use grid_batch_support::{BoundedMap, lock};

/// When the event subscriptions of services were opened.
///
/// A node that was restarted has forgotten all statuses. Then only the replay tells which batches were
/// committed before, so a POST waits for it. Nothing marks its end.
pub(crate) struct ReplayWaits(Mutex<BoundedMap<ServiceId, ReplayWait>>);

struct ReplayWait {
    since: MonotonicTime,
    phase: Phase,
    /// Since when a POST has waited for this subscription and those before it.
    post_waits_since: Option<MonotonicTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first subscription is being opened.
    Opening,
    /// It was opened and did not break; it may have been given up since.
    Opened,
    /// The last subscription broke, or could not be opened.
    Broken,
}

impl ReplayWaits {
    const LIMIT: usize = 100_000;
    /// How long a replay may take.
    const REPLAY_TIME: Duration = Duration::from_millis(300);
    /// How long a POST waits if subscriptions break before they are replayed.
    const LONGEST_WAIT: Duration = Duration::from_secs(2);
    /// How long a POST waits for a subscription that broke: longer than until it is opened again when
    /// the node is back.
    const LONGEST_WAIT_WHILE_BROKEN: Duration = Duration::from_secs(45);
    /// When a POST that waits for a subscription is tried again.
    const RETRY_AFTER: Duration = Duration::from_millis(500);

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// The first subscription of a service is being opened.
    pub(crate) fn opening(&self, service: &ServiceId, now: MonotonicTime) {
        let wait = || ReplayWait { since: now, phase: Phase::Opening, post_waits_since: None };
        lock(&self.0).get_or_insert_with(service, wait);
    }

    /// The subscription of the service broke, or could not be opened. Its node may have restarted, and may
    /// have forgotten what it committed before the next one is open.
    pub(crate) fn broken(&self, service: &ServiceId) {
        if let Some(wait) = lock(&self.0).get_mut(service) {
            wait.phase = Phase::Broken;
        }
    }

    /// A subscription of the service was opened. If the one before was given up and did not break, its
    /// node has no reason to have forgotten statuses.
    pub(crate) fn opened(&self, service: &ServiceId, now: MonotonicTime) {
        let mut services = lock(&self.0);
        let wait = || ReplayWait { since: now, phase: Phase::Opening, post_waits_since: None };
        let wait = services.get_or_insert_with(service, wait);
        if wait.phase != Phase::Opened {
            (wait.since, wait.phase) = (now, Phase::Opened);
        }
    }

    /// How long a POST to the service has to wait.
    pub(crate) fn remaining(&self, service: &ServiceId, now: MonotonicTime) -> Option<Duration> {
        let mut services = lock(&self.0);
        let wait = services.get_mut(service)?;
        let (remaining, limit) = if wait.phase == Phase::Broken {
            (Self::RETRY_AFTER, Self::LONGEST_WAIT_WHILE_BROKEN)
        } else {
            let remaining = Self::REPLAY_TIME.saturating_sub(now.since(wait.since));
            (remaining, Self::LONGEST_WAIT)
        };
        if remaining.is_zero() {
            wait.post_waits_since = None;
            return None;
        }
        let waits_since = *wait.post_waits_since.get_or_insert(now);
        (now.since(waits_since) < limit).then_some(remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ServiceId {
        "a::b".parse().unwrap()
    }

    fn at(millis: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_millis(millis))
    }

    fn remaining(waits: &ReplayWaits, now: u64) -> Option<u128> {
        waits.remaining(&service(), at(now)).map(|wait| wait.as_millis())
    }

    #[test]
    fn post_waits_for_each_replay() {
        let waits = ReplayWaits::new();
        assert_eq!(remaining(&waits, 0), None, "nothing is subscribed to");
        waits.opening(&service(), at(1_000));
        assert_eq!(remaining(&waits, 1_100), Some(200));
        waits.opened(&service(), at(1_200));
        assert_eq!(
            [1_200, 1_499, 1_500].map(|now| remaining(&waits, now)),
            [Some(300), Some(1), None]
        );
        waits.opening(&service(), at(9_000));
        waits.opened(&service(), at(9_000));
        assert_eq!(remaining(&waits, 9_000), None, "the one before was given up");
        waits.broken(&service());
        waits.opened(&service(), at(9_000));
        assert_eq!(remaining(&waits, 9_000), Some(300));
    }

    #[test]
    fn post_waits_for_a_subscription_that_broke() {
        let waits = ReplayWaits::new();
        waits.opened(&service(), at(0));
        assert_eq!(remaining(&waits, 1_000), None);
        waits.broken(&service());
        assert_eq!([2_000, 46_999].map(|now| remaining(&waits, now)), [Some(500); 2]);
        assert_eq!(remaining(&waits, 47_000), None, "it may never be opened again");
        waits.opened(&service(), at(50_000));
        assert_eq!(remaining(&waits, 50_300), None);
        waits.broken(&service());
        assert_eq!(remaining(&waits, 60_000), Some(500));
    }

    #[test]
    fn post_does_not_wait_for_ever_for_subscriptions_that_break() {
        let waits = ReplayWaits::new();
        let reopen = |now| {
            waits.broken(&service());
            waits.opened(&service(), at(now));
        };
        waits.opened(&service(), at(0));
        for now in (0..2_000).step_by(200) {
            reopen(now);
            assert_eq!(remaining(&waits, now), Some(300));
        }
        reopen(2_000);
        assert_eq!(remaining(&waits, 2_000), None);
        assert_eq!(remaining(&waits, 2_300), None);
        reopen(3_000);
        assert_eq!(remaining(&waits, 3_000), Some(300));
    }
}
