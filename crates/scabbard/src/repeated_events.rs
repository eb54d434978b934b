//! Transactions that a node has committed twice.

use std::time::Duration;

use grid_batch_core::{ItemId, MonotonicTime};
use grid_batch_support::BoundedMap;

/// Detects repeated events of one subscription.
///
/// A replay names transactions several times, and its end is not marked. A node sends it as fast as it can, so it has
/// ended when nothing was received for a while. After that, a node sends one event for each commit.
pub(crate) struct RepeatedEvents {
    seen: BoundedMap<ItemId, ()>,
    last_at: MonotonicTime,
    /// How long nothing must be received before the replay counts as ended.
    pause: Duration,
    replay_has_ended: bool,
}

impl RepeatedEvents {
    const LIMIT: usize = 10_000;
    /// The pause before the first event, because a busy node begins its replay late.
    const PAUSE_BEFORE_REPLAY: Duration = Duration::from_secs(10);
    const PAUSE_IN_REPLAY: Duration = Duration::from_secs(1);

    /// A subscription that was opened now.
    pub(crate) fn new(now: MonotonicTime) -> Self {
        let (seen, pause) = (BoundedMap::new(Self::LIMIT), Self::PAUSE_BEFORE_REPLAY);
        Self { seen, last_at: now, pause, replay_has_ended: false }
    }

    /// Records an event, and returns whether its transaction was committed a second time.
    pub(crate) fn receive(&mut self, transaction: ItemId, now: MonotonicTime) -> bool {
        self.replay_has_ended |= now.since(self.last_at) >= self.pause;
        (self.last_at, self.pause) = (now, Self::PAUSE_IN_REPLAY);
        let is_repeated = self.seen.contains(&transaction);
        self.seen.set(&transaction, ());
        is_repeated && self.replay_has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of these events, at these milliseconds after the subscription, are reported.
    fn repeated(events: &[(u8, u64)]) -> Vec<u64> {
        let mut received = RepeatedEvents::new(MonotonicTime::default());
        let at = |millis| MonotonicTime::default().plus(Duration::from_millis(millis));
        let is_repeated = |(number, millis): &&(u8, u64)| {
            received.receive(ItemId::from_bytes([*number; 64]), at(*millis))
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
