//! Transactions that a node has committed twice.

use std::{sync::Mutex, time::Duration};

use grid_batch_core::{ItemId, MonotonicTime};
use grid_batch_support::{BoundedMap, lock};

use crate::observed_nodes::SubscriptionId;

/// The latest transactions of all subscriptions.
pub(crate) struct LatestEvents(Mutex<BoundedMap<(SubscriptionId, ItemId), ()>>);

impl LatestEvents {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records an event, and returns whether the subscription has named the transaction before.
    pub(crate) fn add(&self, subscription: SubscriptionId, transaction: ItemId) -> bool {
        lock(&self.0).set(&(subscription, transaction), ()).is_some()
    }
}

/// Detects repeated events of one subscription.
///
/// A replay names transactions several times, and its end is not marked. A node sends it as fast as it can, so it has
/// ended when nothing was received for a while. After that, a node sends one event for each commit.
pub(crate) struct RepeatedEvents {
    last_at: MonotonicTime,
    /// How long nothing must be received before the replay counts as ended.
    pause: Duration,
    replay_has_ended: bool,
}

impl RepeatedEvents {
    /// The pause before the first event, because a busy node begins its replay late.
    const PAUSE_BEFORE_REPLAY: Duration = Duration::from_secs(10);
    const PAUSE_IN_REPLAY: Duration = Duration::from_secs(1);

    /// A subscription that was opened now.
    pub(crate) fn new(now: MonotonicTime) -> Self {
        Self { last_at: now, pause: Self::PAUSE_BEFORE_REPLAY, replay_has_ended: false }
    }

    /// Records an event, whose transaction the subscription may have named before. Returns whether the transaction was
    /// committed a second time.
    pub(crate) fn receive(&mut self, is_repeated: bool, now: MonotonicTime) -> bool {
        self.replay_has_ended |= now.since(self.last_at) >= self.pause;
        (self.last_at, self.pause) = (now, Self::PAUSE_IN_REPLAY);
        is_repeated && self.replay_has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these events, at these milliseconds after the subscription, are reported.
    fn repeated(events: &[(u8, u64)]) -> Vec<u64> {
        let (mut received, latest) =
            (RepeatedEvents::new(MonotonicTime::default()), LatestEvents::new());
        let at = |millis| MonotonicTime::default().plus(Duration::from_millis(millis));
        let is_repeated = |(number, millis): &&(u8, u64)| {
            let id = ItemId::from_bytes([*number; 64]);
            received.receive(latest.add(SubscriptionId::default(), id), at(*millis))
        };
        events.iter().filter(is_repeated).map(|(_, millis)| *millis).collect()
    }

    #[test]
    fn replay_may_repeat_events() {
        assert!(repeated(&[(1, 9_000), (2, 9_010), (1, 9_020), (2, 9_900)]).is_empty());
    }

    #[test]
    fn second_event_after_the_replay_is_a_second_commit() {
        let after_replay = [(1, 0), (2, 10), (3, 1_010), (3, 1_020), (1, 1_030), (4, 1_040)];
        assert_eq!(repeated(&after_replay), [1_020, 1_030]);
        assert_eq!(repeated(&[(1, 10_000), (1, 10_001)]), [10_001]);
    }
}
