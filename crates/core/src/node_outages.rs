use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{Clock, MonotonicTime, SystemClock, Timestamp};

/// Which nodes of a ledger do not answer, as this process has seen it. Clones share it.
///
/// All requests and websockets to the nodes report to it. It is only shown: it does not decide what is sent.
/// Nodes are named by scheme, host and port of their URLs. Nodes that it was not created for are ignored.
#[derive(Clone)]
pub struct NodeOutages(Arc<Record>);

struct Record {
    clock: Arc<dyn Clock>,
    nodes: BTreeMap<String, Mutex<NodeContact>>,
}

/// What requests to a node have shown.
#[derive(Debug, Default)]
struct NodeContact {
    /// When a request was answered last.
    answered_at: Option<MonotonicTime>,
    /// When something was last expected from the node: an answer, or an event.
    expected_at: Option<MonotonicTime>,
    failure: Option<Failure>,
    /// When a failure was noticed last.
    failed_at: Option<MonotonicTime>,
}

/// The first failure since the last answer, with the latest reason.
#[derive(Debug, Clone)]
struct Failure {
    since: MonotonicTime,
    reason: String,
}

/// A node that does not answer.
///
/// Its text is a sentence without a full stop. It has no secret, but names the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOutage {
    /// Scheme, host and port of the node's URL.
    pub node: String,
    /// When the first request failed since the node last answered.
    pub since: Timestamp,
    /// For how long it has not answered.
    pub lasted: Duration,
    /// Why the last request failed, which may name hosts.
    pub reason: String,
}

impl NodeOutages {
    /// A failure is shown after this time, unless the node answers within it: a connection may break when
    /// nothing is wrong with the node.
    const SHOWN_AFTER: Duration = Duration::from_secs(1);
    /// A node that something is expected from is asked if it has not answered for this long.
    const ASKED_AFTER: Duration = Duration::from_secs(2);
    /// Any other node is asked if it has not answered for this long.
    const IDLE_ASKED_AFTER: Duration = Duration::from_secs(10);
    /// How long something is expected, after the last request that concerned a batch. It is longer than the
    /// usual time between two polls.
    const EXPECTED_FOR: Duration = Duration::from_secs(75);

    /// No outage of any of these nodes.
    pub fn new(nodes: impl IntoIterator<Item = String>, clock: Arc<dyn Clock>) -> Self {
        let nodes = nodes.into_iter().map(|node| (node, Mutex::default())).collect();
        Self(Arc::new(Record { clock, nodes }))
    }

    /// The nodes, in the order of their names.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.nodes.keys().map(String::as_str)
    }

    /// The node answered a request.
    pub fn answered(&self, node: &str) {
        let Some(mut contact) = self.contact(node) else { return };
        contact.answered_at = Some(self.now());
        contact.failure = None;
    }

    /// A request to the node was not answered, or a connection to it broke.
    pub fn failed(&self, node: &str, reason: &str) {
        self.failed_since(node, self.now(), reason);
    }

    /// The node has not answered a request that was sent at this time.
    pub fn unanswered(&self, node: &str, sent_at: MonotonicTime, reason: &str) {
        self.failed_since(node, sent_at, reason);
    }

    fn failed_since(&self, node: &str, since: MonotonicTime, reason: &str) {
        let Some(mut contact) = self.contact(node) else { return };
        if contact.answered_at.is_some_and(|answered_at| answered_at > since) {
            return;
        }
        let first = contact.failure.as_ref().map_or(since, |failure| failure.since.min(since));
        contact.failure = Some(Failure { since: first, reason: reason.to_owned() });
        contact.failed_at = Some(self.now());
    }

    /// When it was noticed last that the node does not answer.
    pub fn failed_at(&self, node: &str) -> Option<MonotonicTime> {
        self.contact(node)?.failed_at
    }

    /// A batch is at this node, or on its way: an answer or an event is expected from it.
    pub fn expect(&self, node: &str) {
        if let Some(mut contact) = self.contact(node) {
            contact.expected_at = Some(self.now());
        }
    }

    /// Whether the node should be asked now only to see whether it answers. It was last asked at this time
    /// for that.
    pub fn should_ask(&self, node: &str, asked_at: Option<MonotonicTime>) -> bool {
        let now = self.now();
        let Some(contact) = self.contact(node) else { return false };
        let is_over =
            |time: Option<MonotonicTime>, limit| time.is_none_or(|at| now.since(at) >= limit);
        if contact.failure.is_some() {
            return is_over(asked_at, Self::SHOWN_AFTER / 4);
        }
        let is_expected = !is_over(contact.expected_at, Self::EXPECTED_FOR);
        let limit = if is_expected { Self::ASKED_AFTER } else { Self::IDLE_ASKED_AFTER };
        is_over(contact.answered_at, limit) && is_over(asked_at, limit)
    }

    /// The outage of this node, if it does not answer.
    pub fn outage(&self, node: &str) -> Option<NodeOutage> {
        let Failure { since, reason } = self.contact(node)?.failure.clone()?;
        self.outage_since(node, since, &reason)
    }

    /// The outage of a node whose answers since this time were not those that it must give.
    pub fn outage_since(
        &self,
        node: &str,
        since: MonotonicTime,
        reason: &str,
    ) -> Option<NodeOutage> {
        let lasted = self.now().since(since);
        (lasted >= Self::SHOWN_AFTER).then(|| NodeOutage {
            node: node.to_owned(),
            since: self.0.clock.now().minus(lasted),
            lasted,
            reason: reason.to_owned(),
        })
    }

    fn contact(&self, node: &str) -> Option<MutexGuard<'_, NodeContact>> {
        let contact = self.0.nodes.get(node)?;
        Some(contact.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn now(&self) -> MonotonicTime {
        self.0.clock.monotonic()
    }
}

/// Without nodes.
impl Default for NodeOutages {
    fn default() -> Self {
        Self::new([], Arc::new(SystemClock))
    }
}

impl PartialEq for NodeOutages {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.nodes.is_empty() && other.0.nodes.is_empty())
    }
}

impl Eq for NodeOutages {}

impl fmt::Debug for NodeOutages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes()).finish()
    }
}

impl fmt::Display for NodeOutage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not answered for {} s", self.node, self.lasted.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    const A: &str = "http://a:1";

    fn outages() -> (NodeOutages, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        (NodeOutages::new([A.to_owned()], clock.clone()), clock)
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn failure_is_shown_soon_unless_the_node_answers() {
        let (outages, clock) = outages();
        outages.failed(A, "refused");
        assert_eq!(outages.outage(A), None);
        clock.advance(seconds(1.5));
        outages.failed(A, "reset");
        clock.advance(seconds(1.0));
        let outage = outages.outage(A).unwrap();
        assert_eq!((outage.lasted, outage.reason.as_str()), (seconds(2.5), "reset"));
        assert_eq!(outage.to_string(), "http://a:1 has not answered for 2 s");
        assert_eq!(outage.since.plus(outage.lasted), clock.now());
        outages.answered(A);
        assert_eq!(outages.outage(A), None);
    }

    #[test]
    fn question_from_before_the_last_answer_shows_nothing() {
        let (outages, clock) = outages();
        let sent_at = clock.monotonic();
        clock.advance(seconds(1.0));
        outages.answered(A);
        clock.advance(seconds(1.0));
        outages.unanswered(A, sent_at, "late");
        assert_eq!(outages.outage(A), None);
        let sent_at = clock.monotonic();
        clock.advance(seconds(2.0));
        outages.unanswered(A, sent_at, "late");
        assert_eq!(outages.outage(A).unwrap().lasted, seconds(2.0));
    }

    #[test]
    fn node_that_something_is_expected_from_is_asked_more_often() {
        let (outages, clock) = outages();
        assert!(outages.should_ask(A, None));
        outages.answered(A);
        assert!(!outages.should_ask(A, None));
        clock.advance(seconds(2.0));
        assert!(!outages.should_ask(A, None));
        outages.expect(A);
        assert!(outages.should_ask(A, None));
        assert!(!outages.should_ask(A, Some(clock.monotonic())));
        clock.advance(NodeOutages::EXPECTED_FOR);
        outages.answered(A);
        clock.advance(seconds(9.9));
        assert!(!outages.should_ask(A, None));
        clock.advance(seconds(0.1));
        assert!(outages.should_ask(A, None));
    }

    #[test]
    fn node_that_failed_is_asked_at_once() {
        let (outages, clock) = outages();
        outages.answered(A);
        outages.failed(A, "reset");
        assert!(outages.should_ask(A, None));
        assert!(!outages.should_ask(A, Some(clock.monotonic())));
        clock.advance(seconds(0.25));
        assert!(outages.should_ask(A, Some(MonotonicTime::default())));
    }

    #[test]
    fn unknown_nodes_are_ignored() {
        let (outages, clock) = outages();
        outages.failed("http://b:1", "refused");
        clock.advance(seconds(9.0));
        assert_eq!(outages.outage("http://b:1"), None);
        assert!(!outages.should_ask("http://b:1", None));
        assert_eq!(outages.nodes().collect::<Vec<_>>(), [A]);
    }
}
