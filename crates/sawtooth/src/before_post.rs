//! The reports of nodes about batches from before the batches were posted.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::batches::{LedgerStatus, StatusReport};
use grid_batch_core::{Clock, MonotonicTime};
use grid_batch_http::origin;
use grid_batch_support::{BoundedMap, lock};
use log::{debug, warn};

use crate::statuses::StatusAtNode;

/// The number of remembered pairs of a node and a batch.
const REMEMBERED: usize = 10_000;

/// The maximum age of a report that allows a POST, because another client may post the batch meanwhile.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// If a node already reports INVALID when this process first asks about a batch that it has not posted, the INVALID
/// does not count for this long. Unless a node has many batches, it executes one in less time.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// How long a node may report an INVALID from before a POST until a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// Distinguishes an INVALID that a node has kept from before a POST from one that is the result of the POST.
///
/// A node executes an invalid batch again if it is posted again. Until it has done so, it reports the old INVALID. If
/// the batch is invalid again, the node adds entries to the old ones.
pub(crate) struct BeforePost {
    clock: Arc<dyn Clock>,
    nodes_and_batches: Mutex<BoundedMap<(String, String), Before>>,
}

/// What a node reported about a batch at some time before the POST, or when this process first asked.
#[derive(Debug, Clone, Copy)]
struct Before {
    status: LedgerStatus,
    kept: Kept,
    at: MonotonicTime,
    post: Post,
    is_warned: bool,
}

/// What a node may report that is not about the last POST.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Nothing: it has reported a status other than INVALID.
    Nothing,
    /// An INVALID with this many entries.
    Entries(usize),
    /// Not known, because it gave no usable answer.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Post {
    /// This process has not posted the batch to the node since.
    None,
    /// This process has posted the batch after the report.
    Here,
    /// Another process, or another node, may have posted the batch before the report.
    Elsewhere,
}

impl BeforePost {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, nodes_and_batches: Mutex::new(BoundedMap::new(REMEMBERED)) }
    }

    pub(crate) fn monotonic(&self) -> MonotonicTime {
        self.clock.monotonic()
    }

    /// Records the report of a node that was asked at this time about a batch that was not posted.
    pub(crate) fn set(&self, node: &str, report: &StatusAtNode, asked_at: MonotonicTime) {
        let before = Before::new(report, asked_at, Post::None);
        lock(&self.nodes_and_batches).set(&key(node, &report.report.batch_id), before);
    }

    /// The same, unless more is known because the batch was posted or the node was asked again.
    pub(crate) fn set_ahead(&self, node: &str, report: &StatusAtNode, asked_at: MonotonicTime) {
        let before = Before::new(report, asked_at, Post::None);
        let mut known = lock(&self.nodes_and_batches);
        let known = known.get_or_insert_with(&key(node, &report.report.batch_id), || before);
        if known.post == Post::None && known.at <= asked_at {
            *known = before;
        }
    }

    /// The status that the node reported, if the batch was not posted since and the report can still be relied on.
    pub(crate) fn fresh_status(&self, node: &str, batch_id: &str) -> Option<LedgerStatus> {
        let known = lock(&self.nodes_and_batches);
        let before = known.get(&key(node, batch_id))?;
        let is_fresh = self.monotonic().since(before.at) < FRESH_FOR;
        (before.post == Post::None && is_fresh).then_some(before.status)
    }

    /// Whether asking ahead about a batch could help its sender, because it was not posted to the node and the last
    /// report will soon be too old.
    pub(crate) fn is_question_useful(&self, node: &str, batch_id: &str) -> bool {
        let known = lock(&self.nodes_and_batches);
        let before = known.get(&key(node, batch_id));
        before.is_none_or(|before| {
            before.post == Post::None && self.monotonic().since(before.at) >= FRESH_FOR / 2
        })
    }

    /// Records that the batch is posted to the node now, although its previous status is not known.
    pub(crate) fn start_blind_post(&self, node: &str, batch_id: &str) {
        if let Some(before) = lock(&self.nodes_and_batches).get_mut(&key(node, batch_id)) {
            (before.kept, before.post) = (Kept::Unknown, Post::Elsewhere);
        }
    }

    /// Records that the batch is posted to the node now, or that the node certainly did not accept it.
    pub(crate) fn set_posted(&self, node: &str, batch_id: &str, is_posted: bool) {
        if let Some(before) = lock(&self.nodes_and_batches).get_mut(&key(node, batch_id)) {
            before.post = if is_posted { Post::Here } else { Post::None };
        }
    }

    /// The node's report, without an INVALID from before the last POST.
    pub(crate) fn review(&self, node: &str, report: StatusAtNode) -> StatusReport {
        if !self.is_from_before(node, &report) {
            return report.report;
        }
        let batch_id = report.report.batch_id;
        StatusReport { batch_id, status: LedgerStatus::NotReported, receipts: Vec::new() }
    }

    /// Whether the report is an INVALID that may be from before the last POST.
    pub(crate) fn is_from_before(&self, node: &str, report: &StatusAtNode) -> bool {
        self.post_before_which(node, report).is_some()
    }

    /// Whether the report is an INVALID from before this process posted the batch, so that the POST may not have
    /// arrived.
    pub(crate) fn may_need_another_post(&self, node: &str, report: &StatusAtNode) -> bool {
        self.post_before_which(node, report).is_some_and(|post| post != Post::Elsewhere)
    }

    /// The POST before which the node may already have had the INVALID of this report.
    fn post_before_which(&self, node: &str, report: &StatusAtNode) -> Option<Post> {
        let now = self.monotonic();
        let mut known = lock(&self.nodes_and_batches);
        let first = || Before::new(report, now, Post::Elsewhere);
        let before = known.get_or_insert_with(&key(node, &report.report.batch_id), first);
        if report.report.status != LedgerStatus::Invalid {
            before.kept = Kept::Nothing;
            return None;
        }
        if before.kept == Kept::Unknown {
            *before = first();
        }
        let age = now.since(before.at);
        let is_from_before = before.kept == Kept::Entries(report.invalid_entries)
            && (before.post != Post::Elsewhere || age < SETTLED_AFTER);
        if is_from_before {
            before.log(node, &report.report.batch_id, age);
        }
        is_from_before.then_some(before.post)
    }
}

impl Before {
    fn new(report: &StatusAtNode, at: MonotonicTime, post: Post) -> Self {
        let status = report.report.status;
        let kept = match status {
            LedgerStatus::Invalid => Kept::Entries(report.invalid_entries),
            _ => Kept::Nothing,
        };
        Self { status, kept, at, post, is_warned: false }
    }

    fn log(&mut self, node: &str, batch_id: &str, age: Duration) {
        let node = origin(node);
        if age >= WARN_AFTER && !self.is_warned {
            self.is_warned = true;
            warn!(
                batch_id, node:% = node;
                "the node still reports the batch as invalid from before it was sent there; the batch \
                 waits until the node has executed it again"
            );
        } else {
            debug!(batch_id, node:% = node; "an INVALID from before the batch was sent does not count");
        }
    }
}

fn key(node: &str, batch_id: &str) -> (String, String) {
    (node.to_owned(), batch_id.to_owned())
}

#[cfg(test)]
mod tests {
    use LedgerStatus::{Committed, Invalid, NotReported, Pending};
    use grid_batch_core::ManualClock;

    use super::*;

    const NODE: &str = "http://node";
    const SECOND: Duration = Duration::from_secs(1);

    fn report(status: LedgerStatus, invalid_entries: usize) -> StatusAtNode {
        let report = StatusReport { batch_id: "a".to_owned(), status, receipts: Vec::new() };
        StatusAtNode { report, invalid_entries }
    }

    fn before_post() -> (Arc<ManualClock>, BeforePost) {
        let clock = Arc::new(ManualClock::default());
        (clock.clone(), BeforePost::new(clock))
    }

    /// What was known about the batch before it was posted just now.
    fn posted_after(
        status: LedgerStatus,
        invalid_entries: usize,
    ) -> (Arc<ManualClock>, BeforePost) {
        let (clock, before) = before_post();
        before.set(NODE, &report(status, invalid_entries), before.monotonic());
        before.set_posted(NODE, "a", true);
        (clock, before)
    }

    fn status(before: &BeforePost, status: LedgerStatus, invalid_entries: usize) -> LedgerStatus {
        before.review(NODE, report(status, invalid_entries)).status
    }

    #[test]
    fn invalid_counts_if_there_was_none_before() {
        for earlier in [NotReported, Pending] {
            let (_clock, before) = posted_after(earlier, 0);
            assert_eq!(status(&before, Invalid, 0), Invalid);
        }
    }

    #[test]
    fn invalid_from_before_counts_with_other_entries() {
        let (clock, before) = posted_after(Invalid, 3);
        assert_eq!(status(&before, Invalid, 3), NotReported);
        clock.advance(1_000 * SECOND);
        assert_eq!(status(&before, Invalid, 3), NotReported, "a look keeps it at the node");
        assert_eq!(status(&before, Invalid, 4), Invalid);
        assert_eq!(status(&before, Invalid, 1), Invalid, "the node had forgotten the others");
    }

    #[test]
    fn invalid_counts_after_another_status() {
        for between in [NotReported, Pending] {
            let (_clock, before) = posted_after(Invalid, 3);
            assert_eq!(status(&before, between, 0), between);
            assert_eq!(status(&before, Invalid, 3), Invalid);
        }
        let (_clock, before) = posted_after(Invalid, 3);
        assert_eq!(status(&before, Committed, 0), Committed);
    }

    #[test]
    fn invalid_of_an_unknown_post_counts_after_a_time() {
        let (clock, before) = before_post();
        assert_eq!(status(&before, Invalid, 3), NotReported);
        clock.advance(SETTLED_AFTER - SECOND);
        assert_eq!(status(&before, Invalid, 3), NotReported);
        clock.advance(SECOND);
        assert_eq!(status(&before, Invalid, 3), Invalid);
    }

    #[test]
    fn invalid_of_an_unknown_post_counts_when_it_is_new() {
        let (_clock, before) = before_post();
        assert_eq!(status(&before, Pending, 0), Pending);
        assert_eq!(status(&before, Invalid, 3), Invalid);
        let (_clock, before) = before_post();
        assert_eq!(status(&before, Invalid, 3), NotReported);
        assert_eq!(status(&before, Invalid, 6), Invalid);
    }

    #[test]
    fn invalid_after_a_blind_post_counts_after_a_time() {
        let (clock, before) = posted_after(NotReported, 0);
        before.start_blind_post(NODE, "a");
        assert_eq!(status(&before, Invalid, 3), NotReported);
        clock.advance(SETTLED_AFTER);
        assert_eq!(status(&before, Invalid, 3), Invalid);
    }

    #[test]
    fn report_allows_a_post_for_a_short_time() {
        let (clock, before) = before_post();
        before.set_ahead(NODE, &report(NotReported, 0), before.monotonic());
        assert_eq!(before.fresh_status(NODE, "a"), Some(NotReported));
        assert_eq!(before.fresh_status("http://other", "a"), None);
        clock.advance(FRESH_FOR);
        assert_eq!(before.fresh_status(NODE, "a"), None);
        before.set_ahead(NODE, &report(Committed, 0), before.monotonic());
        assert_eq!(before.fresh_status(NODE, "a"), Some(Committed));
        clock.advance(FRESH_FOR);
        assert_eq!(before.fresh_status(NODE, "a"), None, "its block may have been abandoned");
    }

    #[test]
    fn report_from_before_a_post_does_not_allow_another() {
        let (_clock, before) = posted_after(NotReported, 0);
        assert_eq!(before.fresh_status(NODE, "a"), None);
        before.set_posted(NODE, "a", false);
        assert_eq!(before.fresh_status(NODE, "a"), Some(NotReported));
    }

    #[test]
    fn question_ahead_that_ends_late_changes_nothing() {
        let (_clock, before) = posted_after(NotReported, 0);
        before.set_ahead(NODE, &report(Invalid, 3), before.monotonic());
        assert_eq!(status(&before, Invalid, 3), Invalid);
    }

    #[test]
    fn batch_is_not_asked_about_again_and_again() {
        let (clock, before) = before_post();
        assert!(before.is_question_useful(NODE, "a"));
        before.set_ahead(NODE, &report(NotReported, 0), before.monotonic());
        assert!(!before.is_question_useful(NODE, "a"));
        clock.advance(FRESH_FOR / 2);
        assert!(before.is_question_useful(NODE, "a"), "the answer is used for as long again");
        before.set_posted(NODE, "a", true);
        assert!(!before.is_question_useful(NODE, "a"), "it was posted");
    }
}
