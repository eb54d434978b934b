use std::sync::{Mutex, MutexGuard, PoisonError};

use grid_batch_core::{HeaderId, Outcome, ServiceId, Timestamp};

use crate::{bounded_map::BoundedMap, subscriptions::SubscriptionId};

/// A batch of a service.
pub(crate) type BatchKey = (ServiceId, HeaderId);

/// What this adapter has sent and observed of the latest history.
pub(crate) struct BatchHistory(Mutex<BoundedMap<BatchKey, BatchRecord>>);

struct BatchRecord {
    first_post: FirstPost,
    /// The last attempt that this adapter made; 0 for none.
    attempt: u32,
    stall: Option<Stall>,
}

/// The first POST of a batch that a node may have accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPost {
    /// No node can have accepted the batch.
    None,
    /// This subscription was live when the POST was sent.
    Observed(SubscriptionId),
    /// No subscription was live when the POST was sent, or another process sent it.
    Unobserved,
}

/// A status in which a batch may stay forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StalledStatus {
    /// Every node reports Unknown.
    Unknown,
    /// A node reports Valid.
    Valid,
}

struct Stall {
    status: StalledStatus,
    since: Timestamp,
}

impl BatchHistory {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records that a POST is about to be sent while this subscription is live.
    ///
    /// Whether it is the first POST is known only if this adapter made this attempt and every
    /// attempt before it.
    pub(crate) fn begin_post(
        &self,
        batch: &BatchKey,
        attempt: Option<u32>,
        live_subscription: Option<SubscriptionId>,
    ) -> PostInProgress<'_> {
        let mut history = self.lock();
        let record = history.get_or_insert_with(batch, || BatchRecord {
            first_post: FirstPost::None,
            attempt: 0,
            stall: None,
        });
        let follows = |attempt: u32| attempt == record.attempt || attempt == record.attempt + 1;
        if !attempt.is_some_and(follows) {
            record.first_post = FirstPost::Unobserved;
        }
        record.attempt = attempt.unwrap_or_default();
        let previous_first_post = record.first_post;
        if previous_first_post == FirstPost::None {
            record.first_post =
                live_subscription.map_or(FirstPost::Unobserved, FirstPost::Observed);
        }
        record.stall = None;
        PostInProgress { history: self, batch: batch.clone(), previous_first_post }
    }

    /// The first POST of a batch that is at this attempt. If another process made the attempt, its
    /// POST was not observed.
    pub(crate) fn first_post(&self, batch: &BatchKey, attempt: u32) -> FirstPost {
        match self.lock().get(batch) {
            Some(record) if record.attempt == attempt => record.first_post,
            _ => FirstPost::Unobserved,
        }
    }

    /// Records that the batch has this status now. Returns since when it has had it.
    pub(crate) fn record_stall(
        &self,
        batch: &BatchKey,
        status: StalledStatus,
        now: Timestamp,
    ) -> Timestamp {
        let mut history = self.lock();
        let unobserved =
            || BatchRecord { first_post: FirstPost::Unobserved, attempt: 0, stall: None };
        let stall = &mut history.get_or_insert_with(batch, unobserved).stall;
        match stall {
            Some(stall) if stall.status == status => stall.since,
            _ => stall.insert(Stall { status, since: now }).since,
        }
    }

    /// Records that the batch has made progress.
    pub(crate) fn clear_stall(&self, batch: &BatchKey) {
        if let Some(record) = self.lock().get_mut(batch) {
            record.stall = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<BatchKey, BatchRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A POST in progress. If it is dropped, a node may have accepted the batch.
#[must_use]
pub(crate) struct PostInProgress<'a> {
    history: &'a BatchHistory,
    batch: BatchKey,
    previous_first_post: FirstPost,
}

impl PostInProgress<'_> {
    /// Records the outcome. A POST that certainly was not accepted does not count.
    pub(crate) fn finish(self, outcome: Outcome) {
        if matches!(outcome, Outcome::Accepted | Outcome::Ambiguous) {
            return;
        }
        if let Some(record) = self.history.lock().get_mut(&self.batch) {
            record.first_post = self.previous_first_post;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::subscriptions::Subscriptions;

    fn batch() -> BatchKey {
        ("a::b".parse().unwrap(), HeaderId::from_bytes([1; 64]))
    }

    /// Two subscriptions, one after the other.
    fn subscription_ids() -> [SubscriptionId; 2] {
        let subscriptions = Arc::new(Subscriptions::default());
        let service = "a::b".parse().unwrap();
        [(); 2].map(|()| {
            let _live = subscriptions.register(&service);
            subscriptions.live(&service).unwrap()
        })
    }

    /// The first POST after POSTs with these attempts, live subscriptions and outcomes.
    fn first_post_after(posts: &[(u32, Option<SubscriptionId>, Outcome)]) -> FirstPost {
        let history = BatchHistory::new();
        for (attempt, live, outcome) in posts {
            history.begin_post(&batch(), Some(*attempt), *live).finish(*outcome);
        }
        history.first_post(&batch(), posts.last().map_or(1, |(attempt, ..)| *attempt))
    }

    #[test]
    fn first_post_is_the_first_that_may_be_accepted() {
        use FirstPost::{None as NoPost, Observed, Unobserved};
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let [a, b] = subscription_ids();
        assert_eq!(first_post_after(&[]), Unobserved);
        assert_eq!(first_post_after(&[(1, Some(a), Ambiguous)]), Observed(a));
        assert_eq!(first_post_after(&[(1, None, Ambiguous)]), Unobserved);
        for accepted in [Accepted, Ambiguous] {
            let twice = [(1, Some(a), accepted), (2, Some(b), Accepted)];
            assert_eq!(first_post_after(&twice), Observed(a));
            let unobserved_first = [(1, None, accepted), (1, Some(b), accepted)];
            assert_eq!(first_post_after(&unobserved_first), Unobserved);
        }
        for not_accepted in [Busy, NotSent, Refused, Rejected] {
            assert_eq!(first_post_after(&[(1, Some(a), not_accepted)]), NoPost);
            let again = [(1, None, not_accepted), (2, Some(b), Ambiguous)];
            assert_eq!(first_post_after(&again), Observed(b));
            let later = [(1, Some(a), Ambiguous), (2, Some(b), not_accepted)];
            assert_eq!(first_post_after(&later), Observed(a));
        }
    }

    #[test]
    fn attempt_of_another_process_is_unobserved() {
        let [a, b] = subscription_ids();
        let history = BatchHistory::new();
        history.begin_post(&batch(), Some(1), Some(a)).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 1), FirstPost::Observed(a));
        assert_eq!(history.first_post(&batch(), 2), FirstPost::Unobserved);
        history.begin_post(&batch(), Some(3), Some(b)).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 3), FirstPost::Unobserved);
    }

    #[test]
    fn later_attempt_without_a_record_is_unobserved() {
        let [a, _] = subscription_ids();
        assert_eq!(first_post_after(&[(2, Some(a), Outcome::Ambiguous)]), FirstPost::Unobserved);
        let refused = [(2, Some(a), Outcome::NotSent), (2, Some(a), Outcome::Accepted)];
        assert_eq!(first_post_after(&refused), FirstPost::Unobserved);
    }

    #[test]
    fn dropped_post_counts_as_sent() {
        let [a, _] = subscription_ids();
        let history = BatchHistory::new();
        drop(history.begin_post(&batch(), Some(1), Some(a)));
        assert_eq!(history.first_post(&batch(), 1), FirstPost::Observed(a));
    }

    #[test]
    fn stall_restarts_with_another_status_or_a_post() {
        use StalledStatus::{Unknown, Valid};
        let history = BatchHistory::new();
        let at = Timestamp::from_micros;
        let stall = |status, now| history.record_stall(&batch(), status, at(now)).as_micros();
        assert_eq!([stall(Valid, 1), stall(Valid, 2), stall(Unknown, 3)], [1, 1, 3]);
        history.clear_stall(&batch());
        assert_eq!([stall(Unknown, 4), stall(Unknown, 5)], [4, 4]);
        drop(history.begin_post(&batch(), None, None));
        assert_eq!(stall(Unknown, 6), 6);
    }
}
