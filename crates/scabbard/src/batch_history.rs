//! What this process knows about the latest batches: the requests that it sent, and the answers of nodes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::ledger::Outcome;
use grid_batch_core::{Clock, ItemId, MonotonicTime, ServiceId};
use grid_batch_support::{BoundedMap, lock};

use crate::{
    applied_transactions::ObservationCount,
    observed_nodes::{SubscriptionId, SubscriptionsAtPost},
};

/// A batch of a service.
pub(crate) type BatchKey = (ServiceId, ItemId);

/// The records of the latest batches.
pub(crate) struct BatchHistory {
    records: Mutex<BoundedMap<BatchKey, BatchRecord>>,
    /// The last questions about batches that no node had, and their answers. Many batches are asked about long before
    /// they are sent, so they must not displace the records of batches that were sent.
    not_found: Mutex<BoundedMap<BatchKey, (BatchQuestion, Unreported)>>,
    clock: Arc<dyn Clock>,
}

/// What is known about a batch; by default nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchRecord {
    /// The last attempt that this adapter made; 0 if none.
    attempt: u32,
    /// The attempts that have begun and not ended, before and during their POST.
    pub(crate) attempts_under_way: u32,
    posts: Posts,
    requests: Requests,
    /// The status in which the batch may stay forever, and since when it has had this status.
    stall: Option<(StalledStatus, MonotonicTime)>,
    /// Whether a node reported the batch as committed.
    pub(crate) is_committed: bool,
    /// Whether an attempt was lost while a node was away. Another node may still vote on it, and refuse the next one
    /// because of that. It is not always known whether the attempt was Valid, because its nodes may have forgotten it.
    pub(crate) may_be_left_over: bool,
}

/// The requests for a batch that may still be on their way.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    /// When the last one was sent.
    sent_at: Option<MonotonicTime>,
    /// The number of requests whose response is awaited.
    under_way: u32,
    /// The number of ended requests that may have reached a node.
    arrived_or_lost: u32,
    /// When the last unanswered one ended.
    unanswered_at: Option<MonotonicTime>,
    /// Whether a node has reported the batch since the last one was sent.
    is_reported: bool,
}

/// The POSTs of a batch. An attempt of 0 means none.
#[derive(Debug, Clone, Copy, Default)]
struct Posts {
    first: FirstPost,
    /// The first POST of the present attempt.
    present: Option<ObservationPoint>,
    /// The attempt of the first POST, if this adapter sent it.
    first_attempt: u32,
    /// The last attempt whose POST a node may have accepted.
    last_attempt: u32,
    /// The last attempt that a node accepted, according to its answer.
    accepted_attempt: u32,
    /// The attempt that was proved to be lost, together with everything before it.
    lost_attempt: u32,
}

/// The first POST of a batch that a node may have accepted and that is not proved to be lost.
///
/// Once absence is proved, earlier POSTs no longer matter. Until the next POST, the moment of the proof takes the
/// place of the first POST.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FirstPost {
    /// No node can have accepted the batch.
    #[default]
    None,
    /// This adapter sent it.
    Here(ObservationPoint),
    /// This adapter did not make an earlier attempt. Another process may have sent it, at an unknown time.
    NotSeen,
    /// Another process sent it, at an unknown time.
    Elsewhere,
}

/// What had been observed of a service at a certain moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObservationPoint {
    pub(crate) subscriptions: SubscriptionsAtPost,
    pub(crate) observations: ObservationCount,
}

/// A status in which a batch may stay forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StalledStatus {
    /// Every node reports Unknown.
    Unknown,
    /// A node reports Valid.
    Valid,
}

/// What is known about an attempt that was proved to be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Whether a node had accepted it and there were no other attempts.
    pub(crate) is_of_only_attempt: bool,
    /// Whether a node of the circuit was away. Another node may still have the batch.
    pub(crate) is_explained: bool,
}

/// A question about a batch to all nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchQuestion {
    pub(crate) asked_at: MonotonicTime,
    /// The subscription that was live and caught up when the question was asked.
    pub(crate) subscription: Option<SubscriptionId>,
}

/// The answers of the nodes about a batch that none of them has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unreported {
    /// Whether they were also asked for a proof that the batch is new.
    pub(crate) asks_history: bool,
    /// Whether a node still knows a batch that was committed when the history of the service was known.
    pub(crate) shows_history: bool,
    /// Whether all nodes have answered.
    pub(crate) is_complete: bool,
}

impl BatchHistory {
    const LIMIT: usize = 100_000;

    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let (records, not_found) = (BoundedMap::new(Self::LIMIT), BoundedMap::new(Self::LIMIT));
        Self { records: Mutex::new(records), not_found: Mutex::new(not_found), clock }
    }

    /// What is known about the batch now.
    pub(crate) fn get(&self, batch: &BatchKey) -> BatchRecord {
        lock(&self.records).get(batch).copied().unwrap_or_default()
    }

    fn update<T>(&self, batch: &BatchKey, update: impl FnOnce(&mut BatchRecord) -> T) -> T {
        update(lock(&self.records).get_or_insert_with(batch, BatchRecord::default))
    }

    /// Records that a POST is about to be sent.
    ///
    /// Only if this adapter made this attempt and every earlier one is it known whether this is the first POST.
    pub(crate) fn begin_post(
        &self,
        batch: &BatchKey,
        attempt: Option<u32>,
        at: ObservationPoint,
    ) -> PostInProgress<'_> {
        let now = self.clock.monotonic();
        let previous = self.update(batch, |record| {
            record.begin_attempt(attempt);
            record.requests.sent_at = Some(now);
            record.requests.under_way += 1;
            record.requests.is_reported = false;
            let previous = record.posts;
            if record.posts.next_is_first() {
                record.posts.first = FirstPost::Here(at);
                record.posts.first_attempt = record.attempt;
                record.posts.lost_attempt = 0;
            }
            record.posts.last_attempt = record.attempt;
            record.posts.present.get_or_insert(at);
            previous
        });
        let (batch, outcome) = (batch.clone(), Outcome::Ambiguous);
        PostInProgress { history: self, batch, previous, outcome }
    }

    /// Records that an attempt has begun, but without a POST so far. It ends when the returned value is dropped.
    pub(crate) fn begin_attempt(
        &self,
        batch: &BatchKey,
        attempt: Option<u32>,
    ) -> AttemptInProgress<'_> {
        self.update(batch, |record| {
            record.begin_attempt(attempt);
            record.attempts_under_way += 1;
        });
        AttemptInProgress { history: self, batch: batch.clone() }
    }

    /// Records that an attempt ended without a POST, because a node has the batch from another
    /// process.
    pub(crate) fn skip_known_batch(&self, batch: &BatchKey, attempt: Option<u32>) {
        self.update(batch, |record| {
            record.begin_attempt(attempt);
            if !matches!(record.posts.first, FirstPost::Here(_)) {
                record.posts.first = FirstPost::Elsewhere;
            }
        });
    }

    /// Records a proof that a batch, which is at this attempt, was not applied until `at`. If the attempt was lost,
    /// nothing that was sent before can be applied any more, and the next POST is the first.
    pub(crate) fn certify_absence(
        &self,
        batch: &BatchKey,
        attempt: u32,
        loss: Loss,
        at: ObservationPoint,
    ) {
        let mut records = lock(&self.records);
        let Some(record) = records.get_mut(batch).filter(|record| record.attempt == attempt) else {
            return;
        };
        record.posts.first = FirstPost::Here(at);
        record.may_be_left_over |= loss.is_explained;
        if loss.is_of_only_attempt {
            record.posts.lost_attempt = attempt;
        }
    }

    /// Records that no node has the batch.
    pub(crate) fn mark_not_found(
        &self,
        batch: &BatchKey,
        question: BatchQuestion,
        unreported: Unreported,
    ) {
        lock(&self.not_found).set(batch, (question, unreported));
    }

    /// The answers to the last question to which no node had the batch, if they can still be used, given the same
    /// question asked `now`.
    pub(crate) fn not_found(&self, batch: &BatchKey, now: BatchQuestion) -> Option<Unreported> {
        let found = lock(&self.not_found).get(batch).copied();
        found.filter(|(question, _)| question.counts(now)).map(|(_, unreported)| unreported)
    }

    /// Records that a node reported the batch as committed.
    pub(crate) fn mark_committed(&self, batch: &BatchKey) {
        self.update(batch, |record| {
            record.note_report();
            record.is_committed = true;
        });
    }

    /// Records that the batch has this status now, and returns since when.
    pub(crate) fn record_stall(
        &self,
        batch: &BatchKey,
        status: StalledStatus,
        now: MonotonicTime,
    ) -> MonotonicTime {
        self.update(batch, |record| {
            record.note_report();
            record.requests.is_reported |= status == StalledStatus::Valid;
            let stall = record.stall.filter(|(stalled, _)| *stalled == status);
            record.stall.insert(stall.unwrap_or((status, now))).1
        })
    }

    /// Records that a node has the batch and that the batch makes progress.
    pub(crate) fn clear_stall(&self, batch: &BatchKey) {
        if let Some(record) = lock(&self.records).get_mut(batch) {
            record.requests.is_reported = true;
            record.stall = None;
        }
    }
}

impl BatchRecord {
    fn begin_attempt(&mut self, attempt: Option<u32>) {
        let follows = |attempt: u32| attempt == self.attempt || attempt == self.attempt + 1;
        match attempt {
            None => self.posts.first = FirstPost::Elsewhere,
            Some(next) if follows(next) || self.posts.first == FirstPost::Elsewhere => {}
            Some(_) => self.posts.first = FirstPost::NotSeen,
        }
        let attempt = attempt.unwrap_or_default();
        if attempt != self.attempt {
            self.posts.present = None;
        }
        (self.attempt, self.stall) = (attempt, None);
    }

    /// Records that a node has reported the batch. If this adapter did not send it, another process did.
    fn note_report(&mut self) {
        if self.attempt == 0 {
            self.posts.first = FirstPost::Elsewhere;
        }
    }

    /// The first POST of a batch that is at this attempt. If another process made the attempt, its POST was not
    /// observed.
    pub(crate) fn first_post(&self, attempt: u32) -> FirstPost {
        let is_own = attempt > 0 && self.attempt == attempt;
        if is_own { self.posts.first } else { FirstPost::Elsewhere }
    }

    /// The first POST of a batch that is at this attempt, if the ledger certainly accepted none of the earlier ones, of
    /// this adapter or of others.
    pub(crate) fn only_post(&self, attempt: u32) -> FirstPost {
        match (self.first_post(attempt), self.posts.present) {
            (FirstPost::NotSeen, Some(at)) => FirstPost::Here(at),
            (first, _) => first,
        }
    }

    /// Whether this adapter has sent this attempt, or a later one, and a node may have accepted it. Before the attempt
    /// is sent, this means that the database went back and counts the attempt again.
    pub(crate) fn was_posted(&self, attempt: u32) -> bool {
        self.posts.last_attempt >= attempt
    }

    /// Whether this attempt has arrived at a node: the node answered that it accepted it, or has reported the batch
    /// since, and no other request can have brought the batch there.
    pub(crate) fn has_arrived(&self, attempt: u32) -> bool {
        let is_accepted = self.posts.accepted_attempt == attempt;
        attempt > 0
            && (is_accepted || (self.attempt == attempt && self.requests.only_one_is_reported()))
    }

    /// How long an unanswered request for the batch may still arrive at a node.
    pub(crate) fn may_arrive_for(&self, limit: Duration, now: MonotonicTime) -> Duration {
        match self.requests.unanswered_at {
            _ if self.requests.under_way > 0 => limit,
            _ if self.requests.only_one_is_reported() => Duration::ZERO,
            Some(at) => limit.saturating_sub(now.since(at)),
            None => Duration::ZERO,
        }
    }

    /// Whether no request for a batch that is at this attempt was ever sent.
    pub(crate) fn is_unsent(&self, attempt: u32) -> bool {
        self.first_post(attempt) == FirstPost::None && self.sent_at().is_none()
    }

    /// When the last request for the batch was sent.
    pub(crate) fn sent_at(&self) -> Option<MonotonicTime> {
        self.requests.sent_at
    }

    /// Since when a node has reported the batch as Valid.
    pub(crate) fn valid_since(&self) -> Option<MonotonicTime> {
        let (status, since) = self.stall?;
        (status == StalledStatus::Valid).then_some(since)
    }

    /// Whether only this attempt can have brought the batch to a node.
    pub(crate) fn is_only_attempt(&self, attempt: u32) -> bool {
        let Posts { first, first_attempt, last_attempt, .. } = self.posts;
        matches!(first, FirstPost::Here(_))
            && [self.attempt, first_attempt, last_attempt] == [attempt; 3]
    }
}

impl Posts {
    /// Whether the batch cannot be applied because of any POST before the next one.
    fn next_is_first(&self) -> bool {
        let all_lost = self.lost_attempt > 0 && self.lost_attempt == self.last_attempt;
        match self.first {
            FirstPost::None => true,
            FirstPost::Here(_) => all_lost,
            FirstPost::NotSeen | FirstPost::Elsewhere => false,
        }
    }
}

impl Requests {
    /// Whether a node has the batch and only one request can have brought it there.
    fn only_one_is_reported(&self) -> bool {
        self.is_reported && self.under_way + self.arrived_or_lost == 1
    }
}

impl BatchQuestion {
    /// How long an answer can be used. It is short, because another client may send the batch meanwhile.
    const COUNTS_FOR: Duration = Duration::from_secs(2);
    /// The same while the subscription has not broken, because an event would have reported a commit.
    const COUNTS_WITH_EVENTS_FOR: Duration = Duration::from_secs(30);

    /// Whether the answer can still be used, given the same question asked `now`.
    fn counts(self, now: Self) -> bool {
        let age = now.asked_at.since(self.asked_at);
        let misses_no_event = self.subscription.is_some() && self.subscription == now.subscription;
        age < Self::COUNTS_FOR || (misses_no_event && age < Self::COUNTS_WITH_EVENTS_FOR)
    }
}

/// An attempt in progress.
#[must_use]
pub(crate) struct AttemptInProgress<'a> {
    history: &'a BatchHistory,
    batch: BatchKey,
}

impl Drop for AttemptInProgress<'_> {
    fn drop(&mut self) {
        if let Some(record) = lock(&self.history.records).get_mut(&self.batch) {
            record.attempts_under_way = record.attempts_under_way.saturating_sub(1);
        }
    }
}

/// A POST in progress. If it is dropped, a node may have accepted the batch.
#[must_use]
pub(crate) struct PostInProgress<'a> {
    history: &'a BatchHistory,
    batch: BatchKey,
    /// The POSTs before this one.
    previous: Posts,
    outcome: Outcome,
}

impl PostInProgress<'_> {
    /// Records the outcome. A POST that was certainly not accepted does not count.
    pub(crate) fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for PostInProgress<'_> {
    fn drop(&mut self) {
        let now = self.history.clock.monotonic();
        let mut records = lock(&self.history.records);
        let Some(record) = records.get_mut(&self.batch) else { return };
        record.requests.under_way = record.requests.under_way.saturating_sub(1);
        match self.outcome {
            Outcome::Accepted => record.posts.accepted_attempt = record.attempt,
            Outcome::Ambiguous => record.requests.unanswered_at = Some(now),
            _ => return record.posts = self.previous,
        }
        record.requests.arrived_or_lost += 1;
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;
    use crate::{
        applied_transactions::AppliedTransactions,
        observed_nodes::{EventSource, ObservedNodes},
        replay::Replay,
    };

    const LOST: Loss = Loss { is_of_only_attempt: true, is_explained: true };
    const NEVER_ARRIVED: Loss = Loss { is_of_only_attempt: false, is_explained: false };

    fn history() -> BatchHistory {
        BatchHistory::new(Arc::new(ManualClock::default()))
    }

    fn batch() -> BatchKey {
        ("a::b".parse().unwrap(), ItemId::from_bytes([1; 64]))
    }

    /// The subscriptions at two moments.
    fn subscriptions_twice() -> [SubscriptionsAtPost; 2] {
        let nodes = Arc::new(ObservedNodes::default());
        let service = "a::b".parse().unwrap();
        [(); 2].map(|()| {
            let _live = nodes.register(
                &service,
                EventSource::Node,
                Replay::from_start(),
                None,
                MonotonicTime::default(),
            );
            nodes.at_post(&service)
        })
    }

    fn none() -> SubscriptionsAtPost {
        SubscriptionsAtPost::default()
    }

    /// A moment with these subscriptions.
    fn at(subscriptions: SubscriptionsAtPost) -> ObservationPoint {
        ObservationPoint {
            subscriptions,
            observations: AppliedTransactions::new().observation_count(),
        }
    }

    /// The first POST with these subscriptions.
    fn here(subscriptions: SubscriptionsAtPost) -> FirstPost {
        FirstPost::Here(at(subscriptions))
    }

    /// The first POST after POSTs with these attempts, subscriptions and outcomes.
    fn first_post_after(posts: &[(u32, SubscriptionsAtPost, Outcome)]) -> FirstPost {
        let history = history();
        for (attempt, subscriptions, outcome) in posts {
            history.begin_post(&batch(), Some(*attempt), at(*subscriptions)).finish(*outcome);
        }
        history.get(&batch()).first_post(posts.last().map_or(1, |(attempt, ..)| *attempt))
    }

    #[test]
    fn first_post_is_the_first_that_may_be_accepted() {
        use FirstPost::{Elsewhere, None as NoPost};
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Refused, Rejected};
        let [a, b] = subscriptions_twice();
        assert_eq!(first_post_after(&[]), Elsewhere);
        assert_eq!(first_post_after(&[(1, a, Ambiguous)]), here(a));
        assert_eq!(first_post_after(&[(1, none(), Ambiguous)]), here(none()));
        for accepted in [Accepted, Ambiguous] {
            let twice = [(1, a, accepted), (2, b, Accepted)];
            assert_eq!(first_post_after(&twice), here(a));
            let unobserved_first = [(1, none(), accepted), (1, b, accepted)];
            assert_eq!(first_post_after(&unobserved_first), here(none()));
        }
        for not_accepted in [Busy, NotSent, Refused, Rejected] {
            assert_eq!(first_post_after(&[(1, a, not_accepted)]), NoPost);
            let again = [(1, none(), not_accepted), (2, b, Ambiguous)];
            assert_eq!(first_post_after(&again), here(b));
            let later = [(1, a, Ambiguous), (2, b, not_accepted)];
            assert_eq!(first_post_after(&later), here(a));
        }
    }

    #[test]
    fn attempt_of_another_process_is_elsewhere() {
        let [a, b] = subscriptions_twice();
        let history = history();
        history.begin_post(&batch(), Some(1), at(a)).finish(Outcome::Ambiguous);
        assert_eq!(history.get(&batch()).first_post(1), here(a));
        assert_eq!(history.get(&batch()).first_post(2), FirstPost::Elsewhere);
        history.begin_post(&batch(), Some(3), at(b)).finish(Outcome::Ambiguous);
        assert_eq!(history.get(&batch()).first_post(3), FirstPost::NotSeen);
    }

    #[test]
    fn first_of_later_attempts_may_not_be_seen() {
        let [a, _] = subscriptions_twice();
        assert_eq!(first_post_after(&[(2, a, Outcome::Ambiguous)]), FirstPost::NotSeen);
        let refused = [(2, a, Outcome::NotSent), (2, a, Outcome::Accepted)];
        assert_eq!(first_post_after(&refused), FirstPost::NotSeen);
    }

    #[test]
    fn present_post_is_the_first_if_no_earlier_one_was_accepted() {
        let [a, b] = subscriptions_twice();
        for earlier in [None, Some(Outcome::Busy), Some(Outcome::Ambiguous)] {
            let history = history();
            if let Some(outcome) = earlier {
                history.begin_post(&batch(), Some(1), at(a)).finish(outcome);
            }
            assert_eq!(history.get(&batch()).only_post(3), FirstPost::Elsewhere);
            history.begin_post(&batch(), Some(3), at(b)).finish(Outcome::Ambiguous);
            history.begin_post(&batch(), Some(3), at(none())).finish(Outcome::Ambiguous);
            assert_eq!(history.get(&batch()).only_post(3), here(b), "{earlier:?}");
            drop(history.begin_attempt(&batch(), Some(4)));
            assert_eq!(history.get(&batch()).only_post(4), FirstPost::NotSeen);
        }
    }

    #[test]
    fn batch_from_elsewhere_has_no_only_post() {
        let [a, _] = subscriptions_twice();
        let history = history();
        history.skip_known_batch(&batch(), Some(2));
        history.begin_post(&batch(), Some(3), at(a)).finish(Outcome::Ambiguous);
        assert_eq!(history.get(&batch()).only_post(3), FirstPost::Elsewhere);
    }

    #[test]
    fn dropped_post_counts_as_sent() {
        let [a, _] = subscriptions_twice();
        let history = history();
        drop(history.begin_post(&batch(), Some(1), at(a)));
        assert_eq!(history.get(&batch()).first_post(1), here(a));
    }

    #[test]
    fn skipped_post_is_no_post_and_keeps_an_earlier_one() {
        let [a, _] = subscriptions_twice();
        let history = history();
        drop(history.begin_attempt(&batch(), Some(1)));
        assert_eq!(history.get(&batch()).first_post(1), FirstPost::None);
        history.begin_post(&batch(), Some(2), at(a)).finish(Outcome::Ambiguous);
        drop(history.begin_attempt(&batch(), Some(3)));
        history.skip_known_batch(&batch(), Some(3));
        assert_eq!(history.get(&batch()).first_post(3), here(a));
    }

    #[test]
    fn batch_that_a_node_has_already_was_sent_elsewhere() {
        for skipped_before in [false, true] {
            let history = history();
            if skipped_before {
                drop(history.begin_attempt(&batch(), Some(1)));
            }
            history.skip_known_batch(&batch(), Some(1));
            assert_eq!(history.get(&batch()).first_post(1), FirstPost::Elsewhere);
        }
    }

    #[test]
    fn attempt_was_posted_if_a_node_may_have_accepted_it() {
        for (outcome, was_posted) in
            [(Outcome::Accepted, true), (Outcome::Ambiguous, true), (Outcome::Busy, false)]
        {
            let history = history();
            history.begin_post(&batch(), Some(1), at(none())).finish(outcome);
            assert_eq!(history.get(&batch()).was_posted(1), was_posted, "{outcome}");
            assert!(!history.get(&batch()).was_posted(2));
            history.begin_post(&batch(), Some(2), at(none())).finish(Outcome::Accepted);
            assert!(history.get(&batch()).was_posted(1) && history.get(&batch()).was_posted(2));
        }
    }

    #[test]
    fn committed_batch_is_remembered() {
        let history = history();
        assert!(!history.get(&batch()).is_committed);
        history.mark_committed(&batch());
        drop(history.begin_post(&batch(), Some(1), at(none())));
        assert!(history.get(&batch()).is_committed);
    }

    #[test]
    fn stall_restarts_with_another_status_or_a_post() {
        use StalledStatus::{Unknown, Valid};
        let history = history();
        let second = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let stall = |status, now| history.record_stall(&batch(), status, second(now));
        assert_eq!([stall(Valid, 1), stall(Valid, 2), stall(Unknown, 3)], [1, 1, 3].map(second));
        history.clear_stall(&batch());
        assert_eq!([stall(Unknown, 4), stall(Unknown, 5)], [4, 4].map(second));
        drop(history.begin_post(&batch(), None, at(none())));
        assert_eq!(stall(Unknown, 6), second(6));
    }

    #[test]
    fn post_after_a_lost_attempt_is_the_first() {
        let [a, b] = subscriptions_twice();
        for rejected in [false, true] {
            let history = history();
            let post = |attempt, subscriptions, outcome| {
                history.begin_post(&batch(), Some(attempt), at(subscriptions)).finish(outcome);
            };
            post(1, none(), Outcome::Accepted);
            history.certify_absence(&batch(), 1, LOST, at(a));
            assert_eq!(history.get(&batch()).first_post(1), here(a));
            if rejected {
                post(2, a, Outcome::Busy);
                assert_eq!(history.get(&batch()).first_post(2), here(a));
            }
            let attempt = if rejected { 3 } else { 2 };
            post(attempt, b, Outcome::Ambiguous);
            assert_eq!(history.get(&batch()).first_post(attempt), here(b));
            assert!(history.get(&batch()).is_only_attempt(attempt));
            // The POST after that is not the first.
            post(attempt + 1, none(), Outcome::Accepted);
            assert_eq!(history.get(&batch()).first_post(attempt + 1), here(b));
            assert!(!history.get(&batch()).is_only_attempt(attempt + 1));
        }
    }

    #[test]
    fn post_after_an_absent_attempt_is_watched_since_the_proof() {
        let [a, b] = subscriptions_twice();
        let history = history();
        history.begin_post(&batch(), Some(1), at(none())).finish(Outcome::Ambiguous);
        history.certify_absence(&batch(), 1, NEVER_ARRIVED, at(a));
        history.begin_post(&batch(), Some(2), at(b)).finish(Outcome::Accepted);
        assert_eq!(history.get(&batch()).first_post(2), here(a));
        assert!(!history.get(&batch()).is_only_attempt(2), "the first one may still arrive");
    }

    #[test]
    fn attempt_has_arrived_if_a_node_said_so() {
        for (outcome, has_arrived) in
            [(Outcome::Accepted, true), (Outcome::Ambiguous, false), (Outcome::Busy, false)]
        {
            let history = history();
            history.begin_post(&batch(), Some(1), at(none())).finish(outcome);
            assert_eq!(history.get(&batch()).has_arrived(1), has_arrived, "{outcome}");
            assert!(!history.get(&batch()).has_arrived(2));
        }
    }

    #[test]
    fn explained_loss_may_leave_a_proposal_behind() {
        let history = history();
        let one_of_two = Loss { is_of_only_attempt: false, ..LOST };
        for (attempt, loss, may_be_left_over) in [(1, NEVER_ARRIVED, false), (2, one_of_two, true)]
        {
            let post = history.begin_post(&batch(), Some(attempt), at(none()));
            post.finish(Outcome::Accepted);
            history.certify_absence(&batch(), attempt, loss, at(none()));
            assert_eq!(history.get(&batch()).may_be_left_over, may_be_left_over, "{loss:?}");
        }
    }

    const LIMIT: Duration = Duration::from_secs(330);

    /// A history with a clock, after a POST that ended with this outcome.
    fn history_after(outcome: Outcome) -> (BatchHistory, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let history = BatchHistory::new(Arc::<ManualClock>::clone(&clock));
        history.begin_post(&batch(), Some(1), at(none())).finish(outcome);
        (history, clock)
    }

    fn may_arrive_for(history: &BatchHistory) -> Duration {
        history.get(&batch()).may_arrive_for(LIMIT, history.clock.monotonic())
    }

    #[test]
    fn request_without_an_answer_may_arrive_until_the_limit() {
        let (history, clock) = history_after(Outcome::Ambiguous);
        let left = || may_arrive_for(&history).as_secs();
        assert_eq!(left(), 330);
        clock.advance(Duration::from_secs(100));
        assert_eq!(left(), 230);
        let post = history.begin_post(&batch(), Some(2), at(none()));
        clock.advance(LIMIT);
        assert_eq!(left(), 330, "it has not ended");
        drop(post);
        clock.advance(Duration::from_secs(329));
        assert_eq!(left(), 1);
        clock.advance(Duration::from_secs(1));
        assert_eq!(left(), 0);
    }

    #[test]
    fn request_with_an_answer_does_not_arrive_later() {
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::NotSent, Outcome::Rejected] {
            let (history, _) = history_after(outcome);
            assert_eq!(may_arrive_for(&history), Duration::ZERO, "{outcome}");
        }
    }

    #[test]
    fn report_shows_that_the_only_request_has_arrived() {
        let (history, _) = history_after(Outcome::Ambiguous);
        assert!(!history.get(&batch()).has_arrived(1));
        history.record_stall(&batch(), StalledStatus::Unknown, history.clock.monotonic());
        assert!(!history.get(&batch()).has_arrived(1));
        history.record_stall(&batch(), StalledStatus::Valid, history.clock.monotonic());
        assert!(history.get(&batch()).has_arrived(1));
        assert_eq!(may_arrive_for(&history), Duration::ZERO);
        // With two requests, a report does not show which of them has arrived.
        history.begin_post(&batch(), Some(2), at(none())).finish(Outcome::Ambiguous);
        history.clear_stall(&batch());
        assert!(!history.get(&batch()).has_arrived(2));
        assert_eq!(may_arrive_for(&history), LIMIT);
    }

    /// Whether an answer counts after these seconds, with these subscriptions then and now.
    fn counts_after(
        seconds: u64,
        then: Option<SubscriptionId>,
        now: Option<SubscriptionId>,
    ) -> bool {
        let question = |seconds, subscription| {
            let asked_at = MonotonicTime::default().plus(Duration::from_secs(seconds));
            BatchQuestion { asked_at, subscription }
        };
        let history = history();
        assert!(history.not_found(&batch(), question(1, None)).is_none());
        for question in [question(1, None), question(5, then)] {
            history.mark_not_found(&batch(), question, Unreported::default());
        }
        history.not_found(&batch(), question(5 + seconds, now)).is_some()
    }

    #[test]
    fn answer_counts_for_long_only_while_no_event_is_missed() {
        let [a, b] = subscriptions_twice().map(|subscriptions| subscriptions.node);
        for (then, now) in [(None, None), (a, None), (None, a), (a, b), (a, a)] {
            assert!(counts_after(1, then, now));
            assert_eq!(counts_after(2, then, now), then == a && now == a, "{then:?} {now:?}");
            assert!(!counts_after(30, then, now));
        }
        assert!(counts_after(29, a, a));
    }
}
