use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::{Clock, MonotonicTime};
use grid_batch_http::{HttpError, HttpResponse, origin};
use grid_batch_support::{BoundedMap, lock};
use log::warn;

use crate::api_error::RestApiError;

/// The outages of nodes, as this process has seen them.
///
/// It distinguishes a node that crashes, so that its connections break, from a node that hangs, which accepts requests
/// but does not answer.
pub(crate) struct Outages {
    clock: Arc<dyn Clock>,
    /// The shortest time without an answer that counts as a hang.
    shortest_hang: Duration,
    seen: Mutex<Seen>,
}

struct Seen {
    nodes: HashMap<String, NodeOutages>,
    /// The last attempts that this process has sent or a node has reported.
    batches: BoundedMap<String, SentAttempt>,
}

#[derive(Debug, Default)]
struct NodeOutages {
    last_answer: Option<MonotonicTime>,
    /// Whether a connection broke since the last answer.
    is_disconnected: bool,
    /// Requests without an answer since the last answer, up to the time when a connection broke.
    unanswered: Option<Unanswered>,
    /// When a request last failed.
    last_outage: Option<MonotonicTime>,
    /// The last hang that is over.
    last_hang: Option<Unanswered>,
}

/// Consecutive requests that a node accepted but did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unanswered {
    began: MonotonicTime,
    until: MonotonicTime,
    requests: u32,
}

/// Since when a batch is at a node.
#[derive(Debug)]
struct SentAttempt {
    /// `None` if another process has sent it.
    node: Option<String>,
    since: MonotonicTime,
}

/// How a request to a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObservedEnd {
    Answered,
    /// The node accepted the request and did not answer in time.
    Unanswered,
    /// The connection to the node, or to the validator behind it, is not there or broke.
    Disconnected,
}

/// What this process has seen of the nodes of a batch since it was sent to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObservedOutage {
    None,
    /// A node did not work, and may have lost the batch.
    Failed,
    /// A node hung for this long before any connection to it broke.
    Hung {
        node: String,
        lasted: Duration,
    },
}

impl Outages {
    /// The minimum number of requests without an answer that counts as a hang.
    const FEWEST_REQUESTS: u32 = 2;
    /// The number of remembered batches. Usually a few hundred are under way.
    const REMEMBERED: usize = 10_000;
    /// How long an outage counts for a batch that another process has sent and no node has reported to this process,
    /// because the outage may be older than the batch.
    const RECENT: Duration = Duration::from_secs(60);

    /// Creates the record for nodes whose requests are given up after this timeout.
    pub(crate) fn new(request_timeout: Duration, clock: Arc<dyn Clock>) -> Self {
        let shortest_hang = request_timeout.saturating_mul(Self::FEWEST_REQUESTS);
        let seen = Seen { nodes: HashMap::new(), batches: BoundedMap::new(Self::REMEMBERED) };
        Self { clock, shortest_hang, seen: Mutex::new(seen) }
    }

    pub(crate) fn monotonic(&self) -> MonotonicTime {
        self.clock.monotonic()
    }

    /// Records how a request ended that was sent at this time.
    pub(crate) fn record(&self, node: &str, sent_at: MonotonicTime, end: ObservedEnd) {
        let (now, shortest) = (self.monotonic(), self.shortest_hang);
        let mut seen = lock(&self.seen);
        let seen = seen.nodes.entry(node.to_owned()).or_default();
        if end != ObservedEnd::Answered {
            seen.last_outage = Some(now);
        }
        match end {
            ObservedEnd::Answered => {
                seen.end_hang(now, shortest);
                (seen.last_answer, seen.is_disconnected) = (Some(now), false);
            }
            ObservedEnd::Disconnected => {
                seen.end_hang(now, shortest);
                seen.is_disconnected = true;
            }
            ObservedEnd::Unanswered => {
                let was_hung = seen.hang(shortest).is_some();
                seen.add_unanswered(sent_at, now);
                if !was_hung && let Some(hang) = seen.hang(shortest) {
                    warn!(
                        node:% = origin(node), seconds = hang.lasted().as_secs();
                        "the node accepts requests and has not answered for a while; the batch that \
                         it has may have stopped it"
                    );
                }
            }
        }
    }

    /// Records that an attempt of the batch is about to be sent to the node.
    pub(crate) fn sending(&self, node: &str, batch_id: &str) {
        let batch = SentAttempt { node: Some(node.to_owned()), since: self.monotonic() };
        lock(&self.seen).batches.set(&batch_id.to_owned(), batch);
    }

    /// Records that the node, in answer to a request of this time, has reported the batch as not finished. This says
    /// nothing about another node to which the batch was sent. In an outage between its answer and this call, the node
    /// may have lost the batch.
    pub(crate) fn reported(&self, node: &str, batch_id: &str, asked_at: MonotonicTime) {
        let mut seen = lock(&self.seen);
        let new = || SentAttempt { node: None, since: asked_at };
        let batch = seen.batches.get_or_insert_with(&batch_id.to_owned(), new);
        if batch.node.as_ref().is_none_or(|sent_to| sent_to == node) {
            batch.since = batch.since.max(asked_at);
        }
    }

    /// What happened to the batch's nodes since it was sent to them.
    pub(crate) fn since_sent(&self, batch_id: &str) -> ObservedOutage {
        let now = self.monotonic();
        let seen = lock(&self.seen);
        let batch = seen.batches.get(&batch_id.to_owned());
        let sent_to = batch.and_then(|batch| batch.node.as_ref());
        let is_known = |at: MonotonicTime| match batch {
            Some(batch) => at >= batch.since,
            None => now.since(at) <= Self::RECENT,
        };
        let mut nodes = seen.nodes.iter().filter(|(node, _)| sent_to.is_none_or(|to| to == *node));
        let hung = nodes.clone().find_map(|(node, seen)| {
            let hangs = [seen.hang(self.shortest_hang), seen.last_hang];
            let counts = |hang: &Unanswered| match batch {
                Some(batch) => hang.began >= batch.since,
                None => is_known(hang.until),
            };
            let hang = hangs.into_iter().flatten().find(counts)?;
            Some(ObservedOutage::Hung { node: node.clone(), lasted: hang.lasted() })
        });
        let has_failed = nodes.any(|(_, seen)| seen.last_outage.is_some_and(is_known));
        hung.unwrap_or(if has_failed { ObservedOutage::Failed } else { ObservedOutage::None })
    }
}

impl ObservedEnd {
    pub(crate) fn of(result: &Result<HttpResponse, HttpError>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(HttpError::TimedOut(_)) => return Self::Unanswered,
            Err(HttpError::NotSent(_) | HttpError::NoResponse(_)) => return Self::Disconnected,
            Err(_) => return Self::Answered,
        };
        let code = RestApiError::from_response(response).map(|error| error.code);
        match (response.status, code) {
            (503, Some(RestApiError::TIMED_OUT)) | (504, None) => Self::Unanswered,
            (503, Some(RestApiError::DISCONNECTED)) | (502, None) => Self::Disconnected,
            _ => Self::Answered,
        }
    }
}

impl NodeOutages {
    fn add_unanswered(&mut self, sent_at: MonotonicTime, now: MonotonicTime) {
        // A node that broke connections has crashed, and a node that has answered since did not hang.
        if self.is_disconnected || self.last_answer.is_some_and(|answer| sent_at < answer) {
            return;
        }
        let first = Unanswered { began: sent_at, until: now, requests: 0 };
        let unanswered = self.unanswered.get_or_insert(first);
        unanswered.began = unanswered.began.min(sent_at);
        unanswered.until = now;
        unanswered.requests += 1;
    }

    /// The present hang.
    fn hang(&self, shortest: Duration) -> Option<Unanswered> {
        self.unanswered.filter(|unanswered| {
            unanswered.requests >= Outages::FEWEST_REQUESTS && unanswered.lasted() >= shortest
        })
    }

    fn end_hang(&mut self, now: MonotonicTime, shortest: Duration) {
        if let Some(hang) = self.hang(shortest) {
            self.last_hang = Some(Unanswered { until: now, ..hang });
        }
        self.unanswered = None;
    }
}

impl Unanswered {
    fn lasted(&self) -> Duration {
        self.until.since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ManualClock;

    use super::*;

    const NODE: &str = "http://a";
    const BATCH: &str = "5a";
    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> MonotonicTime {
        MonotonicTime::default().plus(SECOND * seconds)
    }

    /// The observations of a process since it started. Times are in seconds and must not decrease.
    struct Test {
        clock: Arc<ManualClock>,
        outages: Outages,
    }

    impl Test {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::default());
            Self { outages: Outages::new(SECOND * 12, clock.clone()), clock }
        }

        /// A process that has sent the batch to the node after one second.
        fn with_batch() -> Self {
            let test = Self::new();
            test.record(NODE, 0, 1, ObservedEnd::Answered);
            test.send(BATCH, 1);
            test
        }

        fn wait_until(&self, seconds: u32) {
            self.clock.advance(at(seconds).since(self.clock.monotonic()));
        }

        fn send(&self, batch: &str, seconds: u32) {
            self.wait_until(seconds);
            self.outages.sending(NODE, batch);
        }

        fn record(&self, node: &str, sent_at: u32, ended_at: u32, end: ObservedEnd) {
            self.wait_until(ended_at);
            self.outages.record(node, at(sent_at), end);
        }

        /// Makes consecutive requests that are not answered.
        fn hang(&self, from: u32, requests: u32) {
            for number in 0..requests {
                let sent_at = from + number * 12;
                self.record(NODE, sent_at, sent_at + 12, ObservedEnd::Unanswered);
            }
        }

        fn outage(&self, seconds: u32) -> ObservedOutage {
            self.wait_until(seconds);
            self.outages.since_sent(BATCH)
        }
    }

    fn hung(seconds: u32) -> ObservedOutage {
        ObservedOutage::Hung { node: NODE.to_owned(), lasted: SECOND * seconds }
    }

    #[test]
    fn end_of_a_request_is_read_from_its_result() {
        use ObservedEnd::{Answered, Disconnected, Unanswered};
        let response = |status, code: u16| {
            let body = match code {
                0 => "a page of a proxy".to_owned(),
                code => format!(r#"{{"error": {{"code": {code}}}}}"#),
            };
            Ok(HttpResponse { status, retry_after: None, body: Ok(body.into_bytes()) })
        };
        let text = || "a reason".to_owned();
        for (result, expected) in [
            (response(202, 0), Answered),
            (response(404, 71), Answered),
            (response(500, 10), Answered),
            (response(503, 15), Answered),
            (response(503, 17), Unanswered),
            (response(504, 0), Unanswered),
            (Err(HttpError::TimedOut(text())), Unanswered),
            (response(503, 18), Disconnected),
            (response(502, 0), Disconnected),
            (Err(HttpError::NotSent(text())), Disconnected),
            (Err(HttpError::NoResponse(text())), Disconnected),
            (Err(HttpError::TooLong { limit: 1 }), Answered),
        ] {
            assert_eq!(ObservedEnd::of(&result), expected, "{result:?}");
        }
    }

    #[test]
    fn answers_are_no_outage() {
        let test = Test::with_batch();
        test.record(NODE, 2, 3, ObservedEnd::Answered);
        assert_eq!(test.outage(4), ObservedOutage::None);
    }

    #[test]
    fn node_without_an_answer_to_two_requests_hangs() {
        let test = Test::with_batch();
        test.hang(2, 1);
        assert_eq!(test.outage(15), ObservedOutage::Failed, "one request is not enough");
        test.hang(14, 1);
        assert_eq!(test.outage(27), hung(24), "it lasts");
        test.record(NODE, 40, 41, ObservedEnd::Answered);
        assert_eq!(test.outage(600), hung(39));
    }

    #[test]
    fn requests_at_the_same_time_are_no_hang() {
        let test = Test::with_batch();
        for _ in 0..3 {
            test.hang(2, 1);
        }
        assert_eq!(test.outage(15), ObservedOutage::Failed);
    }

    #[test]
    fn node_that_breaks_connections_first_has_crashed() {
        let test = Test::with_batch();
        test.record(NODE, 2, 2, ObservedEnd::Disconnected);
        test.hang(3, 4);
        test.record(NODE, 60, 61, ObservedEnd::Answered);
        assert_eq!(test.outage(62), ObservedOutage::Failed);
    }

    #[test]
    fn restart_of_a_hung_node_is_no_crash() {
        let test = Test::with_batch();
        test.hang(2, 2);
        test.record(NODE, 27, 27, ObservedEnd::Disconnected);
        test.hang(28, 2);
        test.record(NODE, 60, 61, ObservedEnd::Answered);
        assert_eq!(test.outage(62), hung(25));
    }

    #[test]
    fn answer_within_a_hang_ends_it() {
        let test = Test::with_batch();
        test.hang(2, 1);
        test.record(NODE, 14, 15, ObservedEnd::Answered);
        test.hang(16, 1);
        test.record(NODE, 14, 28, ObservedEnd::Unanswered);
        assert_eq!(test.outage(30), ObservedOutage::Failed);
    }

    #[test]
    fn outage_before_the_attempt_does_not_count() {
        let test = Test::with_batch();
        test.hang(2, 3);
        test.record(NODE, 38, 39, ObservedEnd::Answered);
        assert_eq!(test.outage(40), hung(37));
        test.send(BATCH, 41);
        assert_eq!(test.outage(42), ObservedOutage::None);
    }

    #[test]
    fn batch_that_was_reported_after_an_outage_is_not_lost() {
        let test = Test::with_batch();
        test.hang(2, 3);
        test.record(NODE, 38, 39, ObservedEnd::Answered);
        test.outages.reported(NODE, BATCH, at(39));
        assert_eq!(test.outage(40), ObservedOutage::None);
        test.record("http://b", 41, 41, ObservedEnd::Disconnected);
        assert_eq!(test.outage(42), ObservedOutage::None, "it was not sent to that node");
    }

    #[test]
    fn outage_counts_before_the_answer_is_read() {
        let test = Test::with_batch();
        test.record(NODE, 4, 4, ObservedEnd::Disconnected);
        test.outages.reported(NODE, BATCH, at(3));
        assert_eq!(test.outage(5), ObservedOutage::Failed);
    }

    #[test]
    fn report_of_an_earlier_attempt_does_not_count() {
        let test = Test::with_batch();
        test.record(NODE, 4, 4, ObservedEnd::Disconnected);
        test.send(BATCH, 5);
        test.outages.reported(NODE, BATCH, at(3));
        assert_eq!(test.outage(6), ObservedOutage::None);
    }

    #[test]
    fn only_recent_outages_count_for_a_batch_of_another_process() {
        let test = Test::new();
        test.hang(0, 2);
        test.record(NODE, 30, 30, ObservedEnd::Answered);
        assert_eq!(test.outage(90), hung(30));
        assert_eq!(test.outage(91), ObservedOutage::None);
    }

    #[test]
    fn batches_that_are_under_way_together_are_all_remembered() {
        let test = Test::new();
        let ids: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        for id in &ids {
            test.send(id, 1);
        }
        test.record(NODE, 2, 2, ObservedEnd::Disconnected);
        test.wait_until(99);
        let outages = ids.iter().map(|id| test.outages.since_sent(id));
        assert_eq!(outages.filter(|outage| *outage == ObservedOutage::Failed).count(), ids.len());
    }
}
