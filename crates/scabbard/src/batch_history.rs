use std::sync::{Mutex, MutexGuard, PoisonError};

use grid_batch_core::{HeaderId, MonotonicTime, Outcome, ServiceId};

use crate::{
    applied_transactions::ObservationCount, bounded_map::BoundedMap, subscriptions::SubscriptionId,
};

/// A batch of a service.
pub(crate) type BatchKey = (ServiceId, HeaderId);

/// What this adapter has sent and observed of the latest history.
pub(crate) struct BatchHistory(Mutex<BoundedMap<BatchKey, BatchRecord>>);

struct BatchRecord {
    first_post: FirstPost,
    /// The last attempt that this adapter made; 0 for none.
    attempt: u32,
    /// The last attempt whose POST a node may have accepted; 0 for none.
    posted_attempt: u32,
    stall: Option<Stall>,
    /// A node reported the batch as committed.
    is_committed: bool,
}

/// The first POST of a batch that a node may have accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPost {
    /// No node can have accepted the batch.
    None,
    /// This adapter sent it.
    Here {
        /// When the POST was sent.
        at: ObservationCount,
        /// The subscription that was live then.
        subscription: Option<SubscriptionId>,
    },
    /// Another process sent it, at an unknown time.
    Elsewhere,
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
    since: MonotonicTime,
}

impl BatchHistory {
    const LIMIT: usize = 100_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records that a POST is about to be sent.
    ///
    /// Whether it is the first POST is known only if this adapter made this attempt and every
    /// attempt before it.
    pub(crate) fn begin_post(
        &self,
        batch: &BatchKey,
        attempt: Option<u32>,
        at: ObservationCount,
        live_subscription: Option<SubscriptionId>,
    ) -> PostInProgress<'_> {
        let mut history = self.lock();
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::None));
        record.begin_attempt(attempt);
        let previous = (record.first_post, record.posted_attempt);
        if record.first_post == FirstPost::None {
            record.first_post = FirstPost::Here { at, subscription: live_subscription };
        }
        record.posted_attempt = record.attempt;
        PostInProgress { history: self, batch: batch.clone(), previous }
    }

    /// Whether this adapter has sent this attempt, or a later one, and a node may have accepted it.
    /// Then the attempts were counted from an older state of the database.
    pub(crate) fn was_posted(&self, batch: &BatchKey, attempt: u32) -> bool {
        self.lock().get(batch).is_some_and(|record| record.posted_attempt >= attempt)
    }

    /// Records that an attempt ended without a POST, because transactions of the batch are applied
    /// already.
    pub(crate) fn skip_post(&self, batch: &BatchKey, attempt: Option<u32>) {
        let mut history = self.lock();
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::None));
        record.begin_attempt(attempt);
    }

    /// Records that an attempt ended without a POST, because a node has the batch from another
    /// process.
    pub(crate) fn skip_known_batch(&self, batch: &BatchKey, attempt: Option<u32>) {
        let mut history = self.lock();
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::Elsewhere));
        record.begin_attempt(attempt);
        if record.first_post == FirstPost::None {
            record.first_post = FirstPost::Elsewhere;
        }
    }

    /// The first POST of a batch that is at this attempt. If another process made the attempt, its
    /// POST was not observed.
    pub(crate) fn first_post(&self, batch: &BatchKey, attempt: u32) -> FirstPost {
        match self.lock().get(batch) {
            Some(record) if record.attempt == attempt => record.first_post,
            _ => FirstPost::Elsewhere,
        }
    }

    /// Records that a node reported the batch as committed.
    pub(crate) fn mark_committed(&self, batch: &BatchKey) {
        let mut history = self.lock();
        let elsewhere = || BatchRecord::new(FirstPost::Elsewhere);
        history.get_or_insert_with(batch, elsewhere).is_committed = true;
    }

    /// Whether a node has reported the batch as committed.
    pub(crate) fn is_committed(&self, batch: &BatchKey) -> bool {
        self.lock().get(batch).is_some_and(|record| record.is_committed)
    }

    /// Records that the batch has this status now. Returns since when it has had it.
    pub(crate) fn record_stall(
        &self,
        batch: &BatchKey,
        status: StalledStatus,
        now: MonotonicTime,
    ) -> MonotonicTime {
        let mut history = self.lock();
        let elsewhere = || BatchRecord::new(FirstPost::Elsewhere);
        let stall = &mut history.get_or_insert_with(batch, elsewhere).stall;
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

impl BatchRecord {
    fn new(first_post: FirstPost) -> Self {
        Self { first_post, attempt: 0, posted_attempt: 0, stall: None, is_committed: false }
    }

    fn begin_attempt(&mut self, attempt: Option<u32>) {
        let follows = |attempt: u32| attempt == self.attempt || attempt == self.attempt + 1;
        if !attempt.is_some_and(follows) {
            self.first_post = FirstPost::Elsewhere;
        }
        self.attempt = attempt.unwrap_or_default();
        self.stall = None;
    }
}

/// A POST in progress. If it is dropped, a node may have accepted the batch.
#[must_use]
pub(crate) struct PostInProgress<'a> {
    history: &'a BatchHistory,
    batch: BatchKey,
    /// The first POST and the last attempt that was sent, as they were before.
    previous: (FirstPost, u32),
}

impl PostInProgress<'_> {
    /// Records the outcome. A POST that certainly was not accepted does not count.
    pub(crate) fn finish(self, outcome: Outcome) {
        if matches!(outcome, Outcome::Accepted | Outcome::Ambiguous) {
            return;
        }
        if let Some(record) = self.history.lock().get_mut(&self.batch) {
            (record.first_post, record.posted_attempt) = self.previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{applied_transactions::AppliedTransactions, subscriptions::Subscriptions};

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

    fn now() -> ObservationCount {
        AppliedTransactions::new().observation_count()
    }

    /// The first POST with this live subscription.
    fn here(subscription: Option<SubscriptionId>) -> FirstPost {
        FirstPost::Here { at: now(), subscription }
    }

    /// The first POST after POSTs with these attempts, live subscriptions and outcomes.
    fn first_post_after(posts: &[(u32, Option<SubscriptionId>, Outcome)]) -> FirstPost {
        let history = BatchHistory::new();
        for (attempt, live, outcome) in posts {
            history.begin_post(&batch(), Some(*attempt), now(), *live).finish(*outcome);
        }
        history.first_post(&batch(), posts.last().map_or(1, |(attempt, ..)| *attempt))
    }

    #[test]
    fn first_post_is_the_first_that_may_be_accepted() {
        use FirstPost::{Elsewhere, None as NoPost};
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let [a, b] = subscription_ids();
        assert_eq!(first_post_after(&[]), Elsewhere);
        assert_eq!(first_post_after(&[(1, Some(a), Ambiguous)]), here(Some(a)));
        assert_eq!(first_post_after(&[(1, None, Ambiguous)]), here(None));
        for accepted in [Accepted, Ambiguous] {
            let twice = [(1, Some(a), accepted), (2, Some(b), Accepted)];
            assert_eq!(first_post_after(&twice), here(Some(a)));
            let unobserved_first = [(1, None, accepted), (1, Some(b), accepted)];
            assert_eq!(first_post_after(&unobserved_first), here(None));
        }
        for not_accepted in [Busy, NotSent, Refused, Rejected] {
            assert_eq!(first_post_after(&[(1, Some(a), not_accepted)]), NoPost);
            let again = [(1, None, not_accepted), (2, Some(b), Ambiguous)];
            assert_eq!(first_post_after(&again), here(Some(b)));
            let later = [(1, Some(a), Ambiguous), (2, Some(b), not_accepted)];
            assert_eq!(first_post_after(&later), here(Some(a)));
        }
    }

    #[test]
    fn attempt_of_another_process_is_elsewhere() {
        let [a, b] = subscription_ids();
        let history = BatchHistory::new();
        history.begin_post(&batch(), Some(1), now(), Some(a)).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 1), here(Some(a)));
        assert_eq!(history.first_post(&batch(), 2), FirstPost::Elsewhere);
        history.begin_post(&batch(), Some(3), now(), Some(b)).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 3), FirstPost::Elsewhere);
    }

    #[test]
    fn later_attempt_without_a_record_is_elsewhere() {
        let [a, _] = subscription_ids();
        assert_eq!(first_post_after(&[(2, Some(a), Outcome::Ambiguous)]), FirstPost::Elsewhere);
        let refused = [(2, Some(a), Outcome::NotSent), (2, Some(a), Outcome::Accepted)];
        assert_eq!(first_post_after(&refused), FirstPost::Elsewhere);
    }

    #[test]
    fn dropped_post_counts_as_sent() {
        let [a, _] = subscription_ids();
        let history = BatchHistory::new();
        drop(history.begin_post(&batch(), Some(1), now(), Some(a)));
        assert_eq!(history.first_post(&batch(), 1), here(Some(a)));
    }

    #[test]
    fn skipped_post_is_no_post_and_keeps_an_earlier_one() {
        let [a, _] = subscription_ids();
        let history = BatchHistory::new();
        history.skip_post(&batch(), Some(1));
        assert_eq!(history.first_post(&batch(), 1), FirstPost::None);
        history.begin_post(&batch(), Some(2), now(), Some(a)).finish(Outcome::Ambiguous);
        history.skip_post(&batch(), Some(3));
        history.skip_known_batch(&batch(), Some(3));
        assert_eq!(history.first_post(&batch(), 3), here(Some(a)));
    }

    #[test]
    fn batch_that_a_node_has_already_was_sent_elsewhere() {
        for skipped_before in [false, true] {
            let history = BatchHistory::new();
            if skipped_before {
                history.skip_post(&batch(), Some(1));
            }
            history.skip_known_batch(&batch(), Some(1));
            assert_eq!(history.first_post(&batch(), 1), FirstPost::Elsewhere);
        }
    }

    #[test]
    fn attempt_was_posted_if_a_node_may_have_accepted_it() {
        for (outcome, was_posted) in
            [(Outcome::Accepted, true), (Outcome::Ambiguous, true), (Outcome::Busy, false)]
        {
            let history = BatchHistory::new();
            history.begin_post(&batch(), Some(1), now(), None).finish(outcome);
            assert_eq!(history.was_posted(&batch(), 1), was_posted, "{outcome}");
            assert!(!history.was_posted(&batch(), 2));
            history.begin_post(&batch(), Some(2), now(), None).finish(Outcome::Accepted);
            assert!(history.was_posted(&batch(), 1) && history.was_posted(&batch(), 2));
        }
    }

    #[test]
    fn committed_batch_is_remembered() {
        let history = BatchHistory::new();
        assert!(!history.is_committed(&batch()));
        history.mark_committed(&batch());
        drop(history.begin_post(&batch(), Some(1), now(), None));
        assert!(history.is_committed(&batch()));
    }

    #[test]
    fn stall_restarts_with_another_status_or_a_post() {
        use StalledStatus::{Unknown, Valid};
        let history = BatchHistory::new();
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let stall = |status, now| history.record_stall(&batch(), status, at(now));
        assert_eq!([stall(Valid, 1), stall(Valid, 2), stall(Unknown, 3)], [1, 1, 3].map(at));
        history.clear_stall(&batch());
        assert_eq!([stall(Unknown, 4), stall(Unknown, 5)], [4, 4].map(at));
        drop(history.begin_post(&batch(), None, now(), None));
        assert_eq!(stall(Unknown, 6), at(6));
    }
}
