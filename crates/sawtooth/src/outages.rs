use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_http::{HttpError, HttpResponse, origin};
use grid_batch_support::{BoundedMap, lock};
use log::warn;

use crate::api_error::ApiError;

/// The outages of nodes, as this process has seen them. Clones share what they have seen.
///
/// It tells a node that crashes, whose connections break, from one that is silent: that accepts requests
/// and does not answer.
#[derive(Clone)]
pub(crate) struct Outages(Arc<Mutex<Seen>>);

#[derive(Debug)]
struct Seen {
    /// The shortest time without an answer that counts as silence.
    shortest_silence: Duration,
    nodes: HashMap<String, NodeOutages>,
    /// The last attempts that this process has sent, or that a node has reported.
    batches: BoundedMap<String, BatchAtNode>,
}

#[derive(Debug, Default)]
struct NodeOutages {
    last_answer: Option<Instant>,
    /// Whether a connection broke since the last answer.
    is_disconnected: bool,
    /// Requests without an answer since the last answer, or until a connection broke.
    unanswered: Option<Unanswered>,
    /// When a request last failed.
    last_outage: Option<Instant>,
    /// The last silence that is over.
    last_silence: Option<Unanswered>,
}

/// Requests that a node accepted and did not answer, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unanswered {
    began: Instant,
    until: Instant,
    requests: u32,
}

/// Since when a batch is at a node.
#[derive(Debug)]
struct BatchAtNode {
    /// `None` if another process has sent it.
    node: Option<String>,
    since: Instant,
}

/// How a request to a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Answered,
    /// The node accepted the request and did not answer in time.
    Unanswered,
    /// The connection to the node, or to the validator behind it, is not there or broke.
    Disconnected,
}

/// What this process has seen of the nodes of a batch since it was sent to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outage {
    None,
    /// A node did not work, and may have lost the batch.
    Failed,
    /// A node was silent for so long, before any connection to it broke.
    Silent {
        node: String,
        lasted: Duration,
    },
}

impl Outages {
    /// The least number of requests without an answer that counts as silence.
    const FEWEST_REQUESTS: u32 = 2;
    /// How many batches are remembered. A few hundred are under way.
    const REMEMBERED: usize = 10_000;
    /// How long an outage counts for a batch that another process has sent and that no node has
    /// reported to this one: it may be older than the batch.
    const RECENT: Duration = Duration::from_secs(60);

    /// Nodes of which a request is given up after this timeout.
    pub(crate) fn new(request_timeout: Duration) -> Self {
        Self(Arc::new(Mutex::new(Seen {
            shortest_silence: request_timeout.saturating_mul(Self::FEWEST_REQUESTS),
            nodes: HashMap::new(),
            batches: BoundedMap::new(Self::REMEMBERED),
        })))
    }

    /// Records how a request ended that was sent at this time.
    pub(crate) fn record(&self, node: &str, sent_at: Instant, end: RequestEnd) {
        lock(&self.0).record(node, sent_at, end, Instant::now());
    }

    /// An attempt of the batch is about to be sent to the node.
    pub(crate) fn sending(&self, node: &str, batch_id: &str) {
        lock(&self.0).set_at_node(batch_id, Some(node), Instant::now());
    }

    /// The node has reported, to a request of this time, that it has the batch and that it is not finished.
    /// That says nothing about another node that the batch was sent to.
    pub(crate) fn reported(&self, node: &str, batch_id: &str, asked_at: Instant) {
        lock(&self.0).reported(node, batch_id, asked_at);
    }

    /// What happened to the batch's nodes since it was sent to them.
    pub(crate) fn since_sent(&self, batch_id: &str) -> Outage {
        lock(&self.0).since_sent(batch_id, Instant::now())
    }
}

impl RequestEnd {
    pub(crate) fn of(result: &Result<HttpResponse, HttpError>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(HttpError::TimedOut(_)) => return Self::Unanswered,
            Err(HttpError::NotSent(_) | HttpError::NoResponse(_)) => return Self::Disconnected,
            Err(_) => return Self::Answered,
        };
        let code = ApiError::from_response(response).map(|error| error.code);
        match (response.status, code) {
            (503, Some(ApiError::TIMED_OUT)) | (504, None) => Self::Unanswered,
            (503, Some(ApiError::DISCONNECTED)) | (502, None) => Self::Disconnected,
            _ => Self::Answered,
        }
    }
}

impl Seen {
    fn record(&mut self, node: &str, sent_at: Instant, end: RequestEnd, now: Instant) {
        let shortest = self.shortest_silence;
        let seen = self.nodes.entry(node.to_owned()).or_default();
        if end != RequestEnd::Answered {
            seen.last_outage = Some(now);
        }
        match end {
            RequestEnd::Answered => {
                seen.end_silence(now, shortest);
                (seen.last_answer, seen.is_disconnected) = (Some(now), false);
            }
            RequestEnd::Disconnected => {
                seen.end_silence(now, shortest);
                seen.is_disconnected = true;
            }
            RequestEnd::Unanswered => {
                let was_silent = seen.silence(shortest).is_some();
                seen.add_unanswered(sent_at, now);
                if !was_silent && let Some(silence) = seen.silence(shortest) {
                    warn!(
                        node:% = origin(node), seconds = silence.lasted().as_secs();
                        "the node accepts requests and has not answered for a while; the batch that \
                         it has may have stopped it"
                    );
                }
            }
        }
    }

    /// The node had the batch when it was asked. An outage between its answer and this call may have cost
    /// it the batch.
    fn reported(&mut self, node: &str, batch_id: &str, asked_at: Instant) {
        let sent_at = self.batches.get(&batch_id.to_owned()).map(|batch| batch.since);
        if !self.was_sent_elsewhere(node, batch_id) {
            self.set_at_node(batch_id, None, sent_at.map_or(asked_at, |sent| sent.max(asked_at)));
        }
    }

    fn was_sent_elsewhere(&self, node: &str, batch_id: &str) -> bool {
        let batch = self.batches.get(&batch_id.to_owned());
        batch.and_then(|batch| batch.node.as_deref()).is_some_and(|sent_to| sent_to != node)
    }

    fn set_at_node(&mut self, batch_id: &str, node: Option<&str>, since: Instant) {
        let new = || BatchAtNode { node: None, since };
        let batch = self.batches.get_or_insert_with(&batch_id.to_owned(), new);
        batch.since = since;
        // A report does not tell which node the batch was sent to.
        if let Some(node) = node {
            batch.node = Some(node.to_owned());
        }
    }

    fn since_sent(&self, batch_id: &str, now: Instant) -> Outage {
        let batch = self.batches.get(&batch_id.to_owned());
        let sent_to = batch.and_then(|batch| batch.node.as_ref());
        let is_known = |at: Instant| match batch {
            Some(batch) => at >= batch.since,
            None => now.saturating_duration_since(at) <= Outages::RECENT,
        };
        let mut nodes = self.nodes.iter().filter(|(node, _)| sent_to.is_none_or(|to| to == *node));
        let silent = nodes.clone().find_map(|(node, seen)| {
            let silences = [seen.silence(self.shortest_silence), seen.last_silence];
            let counts = |silence: &Unanswered| match batch {
                Some(batch) => silence.began >= batch.since,
                None => is_known(silence.until),
            };
            let silence = silences.into_iter().flatten().find(counts)?;
            Some(Outage::Silent { node: node.clone(), lasted: silence.lasted() })
        });
        let has_failed = nodes.any(|(_, seen)| seen.last_outage.is_some_and(is_known));
        silent.unwrap_or(if has_failed { Outage::Failed } else { Outage::None })
    }
}

impl NodeOutages {
    fn add_unanswered(&mut self, sent_at: Instant, now: Instant) {
        // A node that broke connections has crashed, and one that has answered since was not silent.
        if self.is_disconnected || self.last_answer.is_some_and(|answer| sent_at < answer) {
            return;
        }
        let first = Unanswered { began: sent_at, until: now, requests: 0 };
        let unanswered = self.unanswered.get_or_insert(first);
        unanswered.began = unanswered.began.min(sent_at);
        unanswered.until = now;
        unanswered.requests += 1;
    }

    /// The present silence.
    fn silence(&self, shortest: Duration) -> Option<Unanswered> {
        self.unanswered.filter(|unanswered| {
            unanswered.requests >= Outages::FEWEST_REQUESTS && unanswered.lasted() >= shortest
        })
    }

    fn end_silence(&mut self, now: Instant, shortest: Duration) {
        if let Some(silence) = self.silence(shortest) {
            self.last_silence = Some(Unanswered { until: now, ..silence });
        }
        self.unanswered = None;
    }
}

impl Unanswered {
    fn lasted(&self) -> Duration {
        self.until.saturating_duration_since(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "http://a";
    const BATCH: &str = "5a";
    const SECOND: Duration = Duration::from_secs(1);

    /// What a process has seen since it started. Times are in seconds.
    struct Test {
        start: Instant,
        seen: Seen,
    }

    impl Test {
        fn new() -> Self {
            let seen = Seen {
                shortest_silence: SECOND * 24,
                nodes: HashMap::new(),
                batches: BoundedMap::new(Outages::REMEMBERED),
            };
            Self { start: Instant::now(), seen }
        }

        /// One that has sent the batch to the node after a second.
        fn with_batch() -> Self {
            let mut test = Self::new();
            test.record(NODE, 0, 1, RequestEnd::Answered);
            test.seen.set_at_node(BATCH, Some(NODE), test.at(1));
            test
        }

        fn at(&self, seconds: u32) -> Instant {
            self.start + SECOND * seconds
        }

        fn record(&mut self, node: &str, sent_at: u32, ended_at: u32, end: RequestEnd) {
            let (sent_at, now) = (self.at(sent_at), self.at(ended_at));
            self.seen.record(node, sent_at, end, now);
        }

        /// Requests without an answer, one after the other.
        fn be_silent(&mut self, from: u32, requests: u32) {
            for number in 0..requests {
                let sent_at = from + number * 12;
                self.record(NODE, sent_at, sent_at + 12, RequestEnd::Unanswered);
            }
        }

        fn outage(&self, seconds: u32) -> Outage {
            self.seen.since_sent(BATCH, self.at(seconds))
        }
    }

    fn silent(seconds: u32) -> Outage {
        Outage::Silent { node: NODE.to_owned(), lasted: SECOND * seconds }
    }

    #[test]
    fn end_of_a_request_is_read_from_its_result() {
        use RequestEnd::{Answered, Disconnected, Unanswered};
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
            assert_eq!(RequestEnd::of(&result), expected, "{result:?}");
        }
    }

    #[test]
    fn answers_are_no_outage() {
        let mut test = Test::with_batch();
        test.record(NODE, 2, 3, RequestEnd::Answered);
        assert_eq!(test.outage(4), Outage::None);
    }

    #[test]
    fn node_without_an_answer_to_two_requests_is_silent() {
        let mut test = Test::with_batch();
        test.be_silent(2, 1);
        assert_eq!(test.outage(15), Outage::Failed, "one request is not enough");
        test.be_silent(14, 1);
        assert_eq!(test.outage(27), silent(24), "it lasts");
        test.record(NODE, 40, 41, RequestEnd::Answered);
        assert_eq!(test.outage(600), silent(39));
    }

    #[test]
    fn requests_at_the_same_time_are_no_silence() {
        let mut test = Test::with_batch();
        for _ in 0..3 {
            test.be_silent(2, 1);
        }
        assert_eq!(test.outage(15), Outage::Failed);
    }

    #[test]
    fn node_that_breaks_connections_first_has_crashed() {
        let mut test = Test::with_batch();
        test.record(NODE, 2, 2, RequestEnd::Disconnected);
        test.be_silent(3, 4);
        test.record(NODE, 60, 61, RequestEnd::Answered);
        assert_eq!(test.outage(62), Outage::Failed);
    }

    #[test]
    fn restart_of_a_silent_node_is_no_crash() {
        let mut test = Test::with_batch();
        test.be_silent(2, 2);
        test.record(NODE, 27, 27, RequestEnd::Disconnected);
        test.be_silent(28, 2);
        test.record(NODE, 60, 61, RequestEnd::Answered);
        assert_eq!(test.outage(62), silent(25));
    }

    #[test]
    fn answer_within_a_silence_ends_it() {
        let mut test = Test::with_batch();
        test.be_silent(2, 1);
        test.record(NODE, 14, 15, RequestEnd::Answered);
        test.be_silent(16, 1);
        test.record(NODE, 14, 28, RequestEnd::Unanswered);
        assert_eq!(test.outage(30), Outage::Failed);
    }

    #[test]
    fn outage_before_the_attempt_does_not_count() {
        let mut test = Test::with_batch();
        test.be_silent(2, 3);
        test.record(NODE, 38, 39, RequestEnd::Answered);
        assert_eq!(test.outage(40), silent(37));
        test.seen.set_at_node(BATCH, Some(NODE), test.at(41));
        assert_eq!(test.outage(42), Outage::None);
    }

    #[test]
    fn batch_that_was_reported_after_an_outage_is_not_lost() {
        let mut test = Test::with_batch();
        test.be_silent(2, 3);
        test.record(NODE, 38, 39, RequestEnd::Answered);
        test.seen.reported(NODE, BATCH, test.at(39));
        assert_eq!(test.outage(40), Outage::None);
        test.record("http://b", 41, 41, RequestEnd::Disconnected);
        assert_eq!(test.outage(42), Outage::None, "it was not sent to that node");
    }

    #[test]
    fn outage_counts_before_the_answer_is_read() {
        let mut test = Test::with_batch();
        test.record(NODE, 4, 4, RequestEnd::Disconnected);
        test.seen.reported(NODE, BATCH, test.at(3));
        assert_eq!(test.outage(5), Outage::Failed);
    }

    #[test]
    fn report_of_an_earlier_attempt_does_not_count() {
        let mut test = Test::with_batch();
        test.record(NODE, 4, 4, RequestEnd::Disconnected);
        test.seen.set_at_node(BATCH, Some(NODE), test.at(5));
        test.seen.reported(NODE, BATCH, test.at(3));
        assert_eq!(test.outage(6), Outage::None);
    }

    #[test]
    fn only_recent_outages_count_for_a_batch_of_another_process() {
        let mut test = Test::new();
        test.be_silent(0, 2);
        test.record(NODE, 30, 30, RequestEnd::Answered);
        assert_eq!(test.outage(90), silent(30));
        assert_eq!(test.outage(91), Outage::None);
    }

    #[test]
    fn batches_that_are_under_way_together_are_all_remembered() {
        let mut test = Test::new();
        let ids: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        for id in &ids {
            test.seen.set_at_node(id, Some(NODE), test.start + SECOND);
        }
        test.record(NODE, 2, 2, RequestEnd::Disconnected);
        let outages = ids.iter().map(|id| test.seen.since_sent(id, test.start + SECOND * 99));
        assert_eq!(outages.filter(|outage| *outage == Outage::Failed).count(), ids.len());
    }
}
