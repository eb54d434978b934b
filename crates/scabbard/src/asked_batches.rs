use std::{sync::Mutex, time::Duration};

use grid_batch_core::MonotonicTime;
use grid_batch_support::{BoundedMap, lock};

use crate::{batch_history::BatchKey, context::ScabbardContext, subscriptions::SubscriptionId};

/// The batches that no node had when nodes were last asked about them before a POST.
pub(crate) struct AskedBatches(Mutex<BoundedMap<BatchKey, AskedAt>>);

/// When a question was asked, and the subscription that was live and caught up then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedAt {
    time: MonotonicTime,
    subscription: Option<SubscriptionId>,
    /// The answer shows everything that was committed since the history of the service was known.
    shows_history: bool,
}

impl AskedBatches {
    const LIMIT: usize = 100_000;
    /// How long an answer counts: another client may send the batch meanwhile.
    const COUNTS_FOR: Duration = Duration::from_secs(2);
    /// The same while the subscription has not broken: a commit would have been an event.
    const COUNTS_WITH_EVENTS_FOR: Duration = Duration::from_secs(30);

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records that a question which was asked then was answered: no node has the batch.
    pub(crate) fn add(&self, batch: &BatchKey, asked_at: AskedAt) {
        lock(&self.0).set(batch, asked_at);
    }

    /// Whether nodes did not have the batch, and that still counts.
    pub(crate) fn contains(&self, batch: &BatchKey, now: AskedAt) -> bool {
        lock(&self.0).get(batch).is_some_and(|asked_at| asked_at.counts(now))
    }

    /// Whether the last answer that no node has the batch shows that it was not committed before either.
    pub(crate) fn shows_history(&self, batch: &BatchKey) -> bool {
        lock(&self.0).get(batch).is_some_and(|asked_at| asked_at.shows_history)
    }
}

impl AskedAt {
    /// A question about a batch of this service that is asked now.
    pub(crate) fn now(context: &ScabbardContext, batch: &BatchKey) -> Self {
        let subscription = context.subscriptions.caught_up(&batch.0);
        Self { time: context.clock.monotonic(), subscription, shows_history: false }
    }

    pub(crate) fn with_history_shown(self, shows_history: bool) -> Self {
        Self { shows_history, ..self }
    }

    fn counts(self, now: Self) -> bool {
        let age = now.time.since(self.time);
        let misses_no_event = self.subscription.is_some() && self.subscription == now.subscription;
        age < AskedBatches::COUNTS_FOR
            || (misses_no_event && age < AskedBatches::COUNTS_WITH_EVENTS_FOR)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use grid_batch_core::{ItemId, ServiceId};

    use super::*;
    use crate::{
        replay::Replay,
        subscriptions::{EventSource, Subscriptions},
    };

    /// Whether an answer counts after these seconds, with these subscriptions then and now.
    fn counts_after(
        seconds: u64,
        then: Option<SubscriptionId>,
        now: Option<SubscriptionId>,
    ) -> bool {
        let batch = ("a::b".parse().unwrap(), ItemId::from_bytes([1; 64]));
        let at = |seconds, subscription| {
            let time = MonotonicTime::default().plus(Duration::from_secs(seconds));
            AskedAt { time, subscription, shows_history: false }
        };
        let asked = AskedBatches::new();
        assert!(!asked.contains(&batch, at(5, now)));
        asked.add(&batch, at(1, None));
        asked.add(&batch, at(5, then));
        asked.contains(&batch, at(5 + seconds, now))
    }

    #[test]
    fn answer_counts_for_long_only_while_no_event_is_missed() {
        let subscriptions = Arc::new(Subscriptions::default());
        let service: ServiceId = "a::b".parse().unwrap();
        let [a, b] = [(); 2].map(|()| {
            let from_start = Replay::from_start();
            let now = MonotonicTime::default();
            let _live = subscriptions.register(&service, EventSource::Node, from_start, None, now);
            subscriptions.at_post(&service).node
        });
        for (then, now) in [(None, None), (a, None), (None, a), (a, b), (a, a)] {
            assert!(counts_after(1, then, now));
            assert_eq!(counts_after(2, then, now), then == a && now == a, "{then:?} {now:?}");
            assert!(!counts_after(30, then, now));
        }
        assert!(counts_after(29, a, a));
    }
}
