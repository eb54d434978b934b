use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{Clock, ItemId, MonotonicTime, Outcome, ServiceId};
use grid_batch_support::{BoundedMap, lock};

use crate::{applied_transactions::ObservationCount, subscriptions::SubscriptionsAtPost};

/// A batch of a service.
pub(crate) type BatchKey = (ServiceId, ItemId);

/// What this adapter has sent and observed of the latest history.
pub(crate) struct BatchHistory {
    records: Mutex<BoundedMap<BatchKey, BatchRecord>>,
    clock: Arc<dyn Clock>,
}

struct BatchRecord {
    /// The last attempt that this adapter made; 0 for none.
    attempt: u32,
    posts: Posts,
    requests: Requests,
    stall: Option<Stall>,
    /// A node reported the batch as committed.
    is_committed: bool,
    /// An attempt was lost while a node was away. Another node may still vote on it, and refuse the next one
    /// for that. Whether it was Valid is not always seen: its nodes may have forgotten it.
    may_be_left_over: bool,
}

/// The requests of a batch that may be on their way.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    /// When the last one was sent.
    sent_at: MonotonicTime,
    /// The number of requests that were sent and whose response is awaited.
    under_way: u32,
    /// How many ended and may have reached a node.
    arrived_or_lost: u32,
    /// When the last one ended that was not answered.
    unanswered_at: Option<MonotonicTime>,
    /// A node has reported the batch since the last one was sent.
    is_reported: bool,
}

/// The POSTs of a batch. Attempts are 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posts {
    first: FirstPost,
    /// The attempt of the first POST, if this adapter sent it.
    first_attempt: u32,
    /// The last attempt whose POST a node may have accepted.
    last_attempt: u32,
    /// The last attempt that a node answered to have accepted.
    accepted_attempt: u32,
    /// The attempt that was proved to be lost, and with it everything before it.
    lost_attempt: u32,
}

/// The first POST of a batch that a node may have accepted and that was not proved to be lost.
///
/// When absence is proved, what happened before does not matter any more. Then it is the moment of that
/// proof, until the next POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPost {
    /// No node can have accepted the batch.
    None,
    /// This adapter sent it.
    Here {
        /// When the POST was sent.
        at: ObservationCount,
        /// The subscriptions that were live then.
        subscriptions: SubscriptionsAtPost,
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

/// What is known of an attempt that was proved to be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    /// A node had accepted it, and there were no other attempts.
    pub(crate) is_of_only_attempt: bool,
    /// A node of the circuit was away. Another node may still have the batch.
    pub(crate) is_explained: bool,
}

struct Stall {
    status: StalledStatus,
    since: MonotonicTime,
}

impl BatchHistory {
    const LIMIT: usize = 100_000;

    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { records: Mutex::new(BoundedMap::new(Self::LIMIT)), clock }
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
        subscriptions: SubscriptionsAtPost,
    ) -> PostInProgress<'_> {
        let now = self.clock.monotonic();
        let mut history = lock(&self.records);
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::None));
        record.begin_attempt(attempt);
        record.requests.sent_at = now;
        record.requests.under_way += 1;
        record.requests.is_reported = false;
        let previous = record.posts;
        if record.posts.next_is_first() {
            record.posts.first = FirstPost::Here { at, subscriptions };
            record.posts.first_attempt = record.attempt;
            record.posts.lost_attempt = 0;
        }
        record.posts.last_attempt = record.attempt;
        PostInProgress {
            history: self,
            batch: batch.clone(),
            previous,
            outcome: Outcome::Ambiguous,
        }
    }

    /// Whether this adapter has sent this attempt, or a later one, and a node may have accepted it.
    /// If the attempt was sent, the database went back and counts it again.
    pub(crate) fn was_posted(&self, batch: &BatchKey, attempt: u32) -> bool {
        lock(&self.records).get(batch).is_some_and(|record| record.posts.last_attempt >= attempt)
    }

    /// Records that an attempt ended without a POST, because transactions of the batch are applied
    /// already.
    pub(crate) fn skip_post(&self, batch: &BatchKey, attempt: Option<u32>) {
        let mut history = lock(&self.records);
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::None));
        record.begin_attempt(attempt);
    }

    /// Records that an attempt ended without a POST, because a node has the batch from another
    /// process.
    pub(crate) fn skip_known_batch(&self, batch: &BatchKey, attempt: Option<u32>) {
        let mut history = lock(&self.records);
        let record = history.get_or_insert_with(batch, || BatchRecord::new(FirstPost::Elsewhere));
        record.begin_attempt(attempt);
        if record.posts.first == FirstPost::None {
            record.posts.first = FirstPost::Elsewhere;
        }
    }

    /// The first POST of a batch that is at this attempt. If another process made the attempt, its
    /// POST was not observed.
    pub(crate) fn first_post(&self, batch: &BatchKey, attempt: u32) -> FirstPost {
        match lock(&self.records).get(batch) {
            Some(record) if record.attempt == attempt => record.posts.first,
            _ => FirstPost::Elsewhere,
        }
    }

    /// Whether this attempt has arrived at a node: it answered so, or it has reported the batch since, and
    /// no other request can have brought it there.
    pub(crate) fn has_arrived(&self, batch: &BatchKey, attempt: u32) -> bool {
        let has_arrived = |record: &BatchRecord| {
            let is_accepted = record.posts.accepted_attempt == attempt;
            is_accepted || (record.attempt == attempt && record.requests.only_one_is_reported())
        };
        attempt > 0 && lock(&self.records).get(batch).is_some_and(has_arrived)
    }

    /// How long a request of the batch that was not answered may still arrive at a node.
    pub(crate) fn may_arrive_for(&self, batch: &BatchKey, limit: Duration) -> Duration {
        let now = self.clock.monotonic();
        let requests =
            lock(&self.records).get(batch).map(|record| record.requests).unwrap_or_default();
        match requests.unanswered_at {
            _ if requests.under_way > 0 => limit,
            _ if requests.only_one_is_reported() => Duration::ZERO,
            Some(at) => limit.saturating_sub(now.since(at)),
            None => Duration::ZERO,
        }
    }

    /// When the last request of the batch was sent.
    pub(crate) fn sent_at(&self, batch: &BatchKey) -> Option<MonotonicTime> {
        lock(&self.records).get(batch).map(|record| record.requests.sent_at)
    }

    /// Whether another node may still vote on an earlier attempt of the batch.
    pub(crate) fn may_be_left_over(&self, batch: &BatchKey) -> bool {
        lock(&self.records).get(batch).is_some_and(|record| record.may_be_left_over)
    }

    /// Since when a node has reported the batch as Valid.
    pub(crate) fn valid_since(&self, batch: &BatchKey) -> Option<MonotonicTime> {
        let history = lock(&self.records);
        let stall = history.get(batch)?.stall.as_ref()?;
        (stall.status == StalledStatus::Valid).then_some(stall.since)
    }

    /// Whether only this attempt can have brought the batch to a node.
    pub(crate) fn is_only_attempt(&self, batch: &BatchKey, attempt: u32) -> bool {
        lock(&self.records).get(batch).is_some_and(|record| {
            let Posts { first, first_attempt, last_attempt, .. } = record.posts;
            matches!(first, FirstPost::Here { .. })
                && [record.attempt, first_attempt, last_attempt] == [attempt; 3]
        })
    }

    /// Records that a batch that is at this attempt was proved not to have been applied until `at`. If
    /// the attempt was lost, nothing that was sent before can be applied, and the next POST is the first.
    pub(crate) fn certify_absence(
        &self,
        batch: &BatchKey,
        attempt: u32,
        loss: Loss,
        at: ObservationCount,
        subscriptions: SubscriptionsAtPost,
    ) {
        let mut history = lock(&self.records);
        let Some(record) = history.get_mut(batch).filter(|record| record.attempt == attempt) else {
            return;
        };
        record.posts.first = FirstPost::Here { at, subscriptions };
        record.may_be_left_over |= loss.is_explained;
        if loss.is_of_only_attempt {
            record.posts.lost_attempt = attempt;
        }
    }

    /// Records that a node reported the batch as committed.
    pub(crate) fn mark_committed(&self, batch: &BatchKey) {
        let mut history = lock(&self.records);
        let elsewhere = || BatchRecord::new(FirstPost::Elsewhere);
        history.get_or_insert_with(batch, elsewhere).is_committed = true;
    }

    /// Whether a node has reported the batch as committed.
    pub(crate) fn is_committed(&self, batch: &BatchKey) -> bool {
        lock(&self.records).get(batch).is_some_and(|record| record.is_committed)
    }

    /// Records that the batch has this status now. Returns since when it has had it.
    pub(crate) fn record_stall(
        &self,
        batch: &BatchKey,
        status: StalledStatus,
        now: MonotonicTime,
    ) -> MonotonicTime {
        let mut history = lock(&self.records);
        let elsewhere = || BatchRecord::new(FirstPost::Elsewhere);
        let record = history.get_or_insert_with(batch, elsewhere);
        record.requests.is_reported |= status == StalledStatus::Valid;
        let stall = &mut record.stall;
        match stall {
            Some(stall) if stall.status == status => stall.since,
            _ => stall.insert(Stall { status, since: now }).since,
        }
    }

    /// Records that a node has the batch, and that it makes progress.
    pub(crate) fn clear_stall(&self, batch: &BatchKey) {
        if let Some(record) = lock(&self.records).get_mut(batch) {
            record.requests.is_reported = true;
            record.stall = None;
        }
    }
}

impl BatchRecord {
    fn new(first_post: FirstPost) -> Self {
        let posts = Posts {
            first: first_post,
            first_attempt: 0,
            last_attempt: 0,
            accepted_attempt: 0,
            lost_attempt: 0,
        };
        Self {
            attempt: 0,
            posts,
            requests: Requests::default(),
            stall: None,
            is_committed: false,
            may_be_left_over: false,
        }
    }

    fn begin_attempt(&mut self, attempt: Option<u32>) {
        let follows = |attempt: u32| attempt == self.attempt || attempt == self.attempt + 1;
        if !attempt.is_some_and(follows) {
            self.posts.first = FirstPost::Elsewhere;
        }
        self.attempt = attempt.unwrap_or_default();
        self.stall = None;
    }
}

impl Posts {
    /// Whether no POST before the next one can have the batch applied.
    fn next_is_first(&self) -> bool {
        let all_lost = self.lost_attempt > 0 && self.lost_attempt == self.last_attempt;
        match self.first {
            FirstPost::None => true,
            FirstPost::Here { .. } => all_lost,
            FirstPost::Elsewhere => false,
        }
    }
}

impl Requests {
    /// Whether a node has the batch, and only one request can have brought it there.
    fn only_one_is_reported(&self) -> bool {
        self.is_reported && self.under_way + self.arrived_or_lost == 1
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
    /// Records the outcome. A POST that certainly was not accepted does not count.
    pub(crate) fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for PostInProgress<'_> {
    fn drop(&mut self) {
        let now = self.history.clock.monotonic();
        if let Some(record) = lock(&self.history.records).get_mut(&self.batch) {
            record.requests.under_way = record.requests.under_way.saturating_sub(1);
            record.requests.arrived_or_lost += 1;
            match self.outcome {
                Outcome::Accepted => record.posts.accepted_attempt = record.attempt,
                Outcome::Ambiguous => record.requests.unanswered_at = Some(now),
                _ => {
                    record.requests.arrived_or_lost -= 1;
                    record.posts = self.previous;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;
    use crate::{
        applied_transactions::AppliedTransactions,
        replay::Replay,
        subscriptions::{EventSource, Subscriptions},
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
        let subscriptions = Arc::new(Subscriptions::default());
        let service = "a::b".parse().unwrap();
        [(); 2].map(|()| {
            let node = EventSource::Node;
            let _live = subscriptions.register(
                &service,
                node,
                Replay::from_start(),
                None,
                MonotonicTime::default(),
            );
            subscriptions.at_post(&service)
        })
    }

    fn none() -> SubscriptionsAtPost {
        SubscriptionsAtPost::default()
    }

    fn now() -> ObservationCount {
        AppliedTransactions::new().observation_count()
    }

    /// The first POST with these subscriptions.
    fn here(subscriptions: SubscriptionsAtPost) -> FirstPost {
        FirstPost::Here { at: now(), subscriptions }
    }

    /// The first POST after POSTs with these attempts, subscriptions and outcomes.
    fn first_post_after(posts: &[(u32, SubscriptionsAtPost, Outcome)]) -> FirstPost {
        let history = history();
        for (attempt, subscriptions, outcome) in posts {
            history.begin_post(&batch(), Some(*attempt), now(), *subscriptions).finish(*outcome);
        }
        history.first_post(&batch(), posts.last().map_or(1, |(attempt, ..)| *attempt))
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
        history.begin_post(&batch(), Some(1), now(), a).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 1), here(a));
        assert_eq!(history.first_post(&batch(), 2), FirstPost::Elsewhere);
        history.begin_post(&batch(), Some(3), now(), b).finish(Outcome::Ambiguous);
        assert_eq!(history.first_post(&batch(), 3), FirstPost::Elsewhere);
    }

    #[test]
    fn later_attempt_without_a_record_is_elsewhere() {
        let [a, _] = subscriptions_twice();
        assert_eq!(first_post_after(&[(2, a, Outcome::Ambiguous)]), FirstPost::Elsewhere);
        let refused = [(2, a, Outcome::NotSent), (2, a, Outcome::Accepted)];
        assert_eq!(first_post_after(&refused), FirstPost::Elsewhere);
    }

    #[test]
    fn dropped_post_counts_as_sent() {
        let [a, _] = subscriptions_twice();
        let history = history();
        drop(history.begin_post(&batch(), Some(1), now(), a));
        assert_eq!(history.first_post(&batch(), 1), here(a));
    }

    #[test]
    fn skipped_post_is_no_post_and_keeps_an_earlier_one() {
        let [a, _] = subscriptions_twice();
        let history = history();
        history.skip_post(&batch(), Some(1));
        assert_eq!(history.first_post(&batch(), 1), FirstPost::None);
        history.begin_post(&batch(), Some(2), now(), a).finish(Outcome::Ambiguous);
        history.skip_post(&batch(), Some(3));
        history.skip_known_batch(&batch(), Some(3));
        assert_eq!(history.first_post(&batch(), 3), here(a));
    }

    #[test]
    fn batch_that_a_node_has_already_was_sent_elsewhere() {
        for skipped_before in [false, true] {
            let history = history();
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
            let history = history();
            history.begin_post(&batch(), Some(1), now(), none()).finish(outcome);
            assert_eq!(history.was_posted(&batch(), 1), was_posted, "{outcome}");
            assert!(!history.was_posted(&batch(), 2));
            history.begin_post(&batch(), Some(2), now(), none()).finish(Outcome::Accepted);
            assert!(history.was_posted(&batch(), 1) && history.was_posted(&batch(), 2));
        }
    }

    #[test]
    fn committed_batch_is_remembered() {
        let history = history();
        assert!(!history.is_committed(&batch()));
        history.mark_committed(&batch());
        drop(history.begin_post(&batch(), Some(1), now(), none()));
        assert!(history.is_committed(&batch()));
    }

    #[test]
    fn stall_restarts_with_another_status_or_a_post() {
        use StalledStatus::{Unknown, Valid};
        let history = history();
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let stall = |status, now| history.record_stall(&batch(), status, at(now));
        assert_eq!([stall(Valid, 1), stall(Valid, 2), stall(Unknown, 3)], [1, 1, 3].map(at));
        history.clear_stall(&batch());
        assert_eq!([stall(Unknown, 4), stall(Unknown, 5)], [4, 4].map(at));
        drop(history.begin_post(&batch(), None, now(), none()));
        assert_eq!(stall(Unknown, 6), at(6));
    }

    #[test]
    fn post_after_a_lost_attempt_is_the_first() {
        let [a, b] = subscriptions_twice();
        for rejected in [false, true] {
            let history = history();
            let post = |attempt, subscriptions, outcome| {
                history.begin_post(&batch(), Some(attempt), now(), subscriptions).finish(outcome);
            };
            post(1, none(), Outcome::Accepted);
            history.certify_absence(&batch(), 1, LOST, now(), a);
            assert_eq!(history.first_post(&batch(), 1), here(a));
            if rejected {
                post(2, a, Outcome::Busy);
                assert_eq!(history.first_post(&batch(), 2), here(a));
            }
            let attempt = if rejected { 3 } else { 2 };
            post(attempt, b, Outcome::Ambiguous);
            assert_eq!(history.first_post(&batch(), attempt), here(b));
            assert!(history.is_only_attempt(&batch(), attempt));
            // Its own successor is not the first.
            post(attempt + 1, none(), Outcome::Accepted);
            assert_eq!(history.first_post(&batch(), attempt + 1), here(b));
            assert!(!history.is_only_attempt(&batch(), attempt + 1));
        }
    }

    #[test]
    fn post_after_an_absent_attempt_is_watched_since_the_proof() {
        let [a, b] = subscriptions_twice();
        let history = history();
        history.begin_post(&batch(), Some(1), now(), none()).finish(Outcome::Ambiguous);
        history.certify_absence(&batch(), 1, NEVER_ARRIVED, now(), a);
        history.begin_post(&batch(), Some(2), now(), b).finish(Outcome::Accepted);
        assert_eq!(history.first_post(&batch(), 2), here(a));
        assert!(!history.is_only_attempt(&batch(), 2), "the first one may still arrive");
    }

    #[test]
    fn attempt_has_arrived_if_a_node_said_so() {
        for (outcome, has_arrived) in
            [(Outcome::Accepted, true), (Outcome::Ambiguous, false), (Outcome::Busy, false)]
        {
            let history = history();
            history.begin_post(&batch(), Some(1), now(), none()).finish(outcome);
            assert_eq!(history.has_arrived(&batch(), 1), has_arrived, "{outcome}");
            assert!(!history.has_arrived(&batch(), 2));
        }
    }

    #[test]
    fn explained_loss_may_leave_a_proposal_behind() {
        let history = history();
        let one_of_two = Loss { is_of_only_attempt: false, ..LOST };
        for (attempt, loss, may_be_left_over) in [(1, NEVER_ARRIVED, false), (2, one_of_two, true)]
        {
            let post = history.begin_post(&batch(), Some(attempt), now(), none());
            post.finish(Outcome::Accepted);
            history.certify_absence(&batch(), attempt, loss, now(), none());
            assert_eq!(history.may_be_left_over(&batch()), may_be_left_over, "{loss:?}");
        }
    }

    const LIMIT: Duration = Duration::from_secs(330);

    /// A history with a clock, after a POST that ended with this outcome.
    fn history_after(outcome: Outcome) -> (BatchHistory, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let history = BatchHistory::new(Arc::<ManualClock>::clone(&clock));
        history.begin_post(&batch(), Some(1), now(), none()).finish(outcome);
        (history, clock)
    }

    #[test]
    fn request_without_an_answer_may_arrive_until_the_limit() {
        let (history, clock) = history_after(Outcome::Ambiguous);
        let left = || history.may_arrive_for(&batch(), LIMIT).as_secs();
        assert_eq!(left(), 330);
        clock.advance(Duration::from_secs(100));
        assert_eq!(left(), 230);
        let post = history.begin_post(&batch(), Some(2), now(), none());
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
            assert_eq!(history.may_arrive_for(&batch(), LIMIT), Duration::ZERO, "{outcome}");
        }
    }

    #[test]
    fn report_shows_that_the_only_request_has_arrived() {
        let (history, _) = history_after(Outcome::Ambiguous);
        assert!(!history.has_arrived(&batch(), 1));
        history.record_stall(&batch(), StalledStatus::Unknown, history.clock.monotonic());
        assert!(!history.has_arrived(&batch(), 1));
        history.record_stall(&batch(), StalledStatus::Valid, history.clock.monotonic());
        assert!(history.has_arrived(&batch(), 1));
        assert_eq!(history.may_arrive_for(&batch(), LIMIT), Duration::ZERO);
        // With two, it does not show which of them has.
        history.begin_post(&batch(), Some(2), now(), none()).finish(Outcome::Ambiguous);
        history.clear_stall(&batch());
        assert!(!history.has_arrived(&batch(), 2));
        assert_eq!(history.may_arrive_for(&batch(), LIMIT), LIMIT);
    }
}
