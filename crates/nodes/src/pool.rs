use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicBool},
    time::Duration,
};

use grid_batch_core::ledger::{Outage, Outcome};
use grid_batch_core::{Clock, MonotonicTime, ServiceId, SystemClock};
use grid_batch_support::redact_url;
use log::{info, warn};
use tokio::sync::watch;

use crate::{
    Node, NodeResolver, StatusUrlResolver, node::is_failure, resolver::ConfirmedNodes,
    routes::Routes,
};

/// What this process knows about the nodes of a ledger. Clones share their state.
///
/// A service stays with one node, because another one may not have applied its last batch yet. It
/// changes its node only when that node fails. A node that fails is not used for a while. Then it is tried with
/// one batch. If all nodes have failed, the one that failed longest ago is used.
#[derive(Clone)]
pub struct NodePool(pub(crate) Arc<NodePoolState>);

pub(crate) struct NodePoolState {
    clock: Arc<dyn Clock>,
    /// In the order of their URLs.
    nodes: Vec<Node>,
    routes: Routes,
    /// How long a submission waits until its node has confirmed its ledger. Unset: nodes need not confirm it.
    pub(crate) confirmation_limit: OnceLock<Duration>,
    pub(crate) closed: AtomicBool,
    /// Sent after each answer of a node about its ledger.
    pub(crate) answers: watch::Sender<()>,
    /// How often a node came back after it was out or not confirmed.
    returns: watch::Sender<u64>,
}

/// The nodes of a ledger, and which services use which nodes.
#[derive(Debug, Clone)]
pub struct NodePoolOptions {
    /// The URLs of the nodes that are shared by all services without a node of their own.
    pub urls: Vec<String>,
    /// Whether services begin with different ones of `urls`. Otherwise all begin with the first.
    pub spread: bool,
    /// The services that have a node of their own, with its URL.
    pub services: Vec<(ServiceId, String)>,
    /// The services that have peers, with the URLs of these: no batch is sent to a peer.
    pub peers: Vec<(ServiceId, String)>,
    /// Returns the name of a node: scheme, host and port of its URL.
    pub name: fn(&str) -> String,
    /// Measures for how long nodes do not answer.
    pub clock: Arc<dyn Clock>,
}

impl Default for NodePoolOptions {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            spread: false,
            services: Vec::new(),
            peers: Vec::new(),
            name: redact_url,
            clock: Arc::new(SystemClock),
        }
    }
}

impl NodePool {
    /// Nodes that every service may use, the first one first.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let urls = urls.into_iter().map(Into::into).collect();
        Self::with_options(NodePoolOptions { urls, ..NodePoolOptions::default() })
    }

    /// The nodes of these options.
    pub fn with_options(options: NodePoolOptions) -> Self {
        let NodePoolOptions { urls, spread, services, peers, name, clock } = options;
        let of_services = services.iter().chain(&peers).map(|(_, url)| url);
        let mut all: Vec<String> = urls.iter().chain(of_services).cloned().collect();
        all.sort_unstable();
        all.dedup();
        let index = |url: &String| all.binary_search(url).unwrap_or_default();
        let mut peers_by_service = HashMap::<String, Vec<usize>>::new();
        for (service, url) in &peers {
            peers_by_service.entry(service.to_string()).or_default().push(index(url));
        }
        let mut shared: Vec<usize> = Vec::new();
        for node in urls.iter().map(index) {
            if !shared.contains(&node) {
                shared.push(node);
            }
        }
        let routes = Routes {
            shared,
            is_spread: spread,
            own: services.iter().map(|(id, url)| (id.to_string(), index(url))).collect(),
            peers: peers_by_service,
            state: Default::default(),
        };
        let nodes = all.into_iter().map(|url| Node::new(url.clone(), name(&url))).collect();
        Self(Arc::new(NodePoolState {
            clock,
            nodes,
            routes,
            confirmation_limit: OnceLock::new(),
            closed: AtomicBool::new(false),
            answers: watch::Sender::default(),
            returns: watch::Sender::default(),
        }))
    }

    /// All nodes, in the order of their URLs.
    pub fn nodes(&self) -> &[Node] {
        &self.0.nodes
    }

    /// How many nodes there are, and how many of them work. Nodes with the same name count as one.
    pub fn counts(&self) -> (usize, usize) {
        let names = |nodes: &mut dyn Iterator<Item = &Node>| {
            nodes.map(|node| node.name().to_owned()).collect::<HashSet<_>>().len()
        };
        let all = || self.0.nodes.iter();
        (names(&mut all()), names(&mut all().filter(|node| self.works(node))))
    }

    /// Whether the node answers and has confirmed its ledger.
    pub fn works(&self, node: &Node) -> bool {
        self.is_confirmed(node.url()) && self.outage(node).is_none()
    }

    /// The node with this URL.
    pub fn node(&self, url: &str) -> Option<&Node> {
        self.position(url).map(|node| &self.0.nodes[node])
    }

    fn position(&self, url: &str) -> Option<usize> {
        self.0.nodes.binary_search_by(|node| node.url().cmp(url)).ok()
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Node> {
        self.0.nodes.iter().filter(move |node| node.name() == name)
    }

    /// Whether services without a node of their own have several nodes.
    pub fn has_several_shared_nodes(&self) -> bool {
        self.0.routes.shared.len() > 1
    }

    /// Whether services have nodes of their own.
    pub fn has_own_nodes(&self) -> bool {
        !self.0.routes.own.is_empty()
    }

    /// The nodes on which batches of a service depend: its own and its peers.
    fn nodes_of(&self, service: &str) -> Vec<&Node> {
        let routes = &self.0.routes;
        let peers = routes.peers.get(service).into_iter().flatten();
        let mut nodes: Vec<_> = routes.candidates(service).iter().chain(peers).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().map(|node| &self.0.nodes[*node]).collect()
    }

    /// The only node to which batches of a service are sent; `None` if it has none, or several.
    pub fn only_node_of(&self, service: &str) -> Option<usize> {
        match self.0.routes.candidates(service) {
            [node] => Some(*node),
            _ => None,
        }
    }

    /// The node that is asked first about a service, if there are several nodes.
    pub(crate) fn asked_node_of(&self, service: &str) -> Option<usize> {
        (self.0.nodes.len() > 1).then(|| self.by_preference(service, "").first().copied()).flatten()
    }

    /// A submitter's resolver.
    pub fn resolver<S>(&self) -> Arc<NodeResolver<S>> {
        Arc::new(NodeResolver::new(self.clone()))
    }

    /// The nodes that have confirmed their ledger.
    pub fn confirmed(&self) -> Arc<dyn StatusUrlResolver> {
        Arc::new(ConfirmedNodes(self.clone()))
    }

    /// The node to which the next batch of a service is sent.
    pub(crate) fn take_url(&self, service: &str) -> Option<&str> {
        self.expect_of(service);
        let routes = &self.0.routes;
        let now = self.monotonic();
        let nodes = &self.0.nodes;
        let mut in_turn = routes.in_turn(service);
        let longest_failed = in_turn.clone().min_by_key(|at| nodes[*at].lock().failed_at(now));
        let chosen = match in_turn.find(|at| nodes[*at].lock().take_if_usable(now)) {
            Some(usable) => usable,
            None => longest_failed.inspect(|at| nodes[*at].lock().take(now))?,
        };
        routes.use_node(service, chosen);
        Some(nodes[chosen].url())
    }

    /// Records the outcome of an attempt to send this batch to the node at this URL.
    pub(crate) fn sent(&self, batch_header: &str, url: &str, outcome: Outcome) {
        let Some(index) = self.position(url) else { return };
        let (node, failed) = (&self.0.nodes[index], is_failure(outcome));
        if matches!(outcome, Outcome::NotSent | Outcome::Ambiguous) {
            node.connection_failed();
        }
        if !self.has_several_shared_nodes() {
            // A service that has only one node stays with it.
            return;
        }
        let failed_at = failed.then(|| self.monotonic());
        let had_failed =
            std::mem::replace(&mut node.lock().submission_failed_at, failed_at).is_some();
        if outcome == Outcome::Accepted || outcome == Outcome::Ambiguous {
            self.0.routes.set_received(batch_header, index, outcome == Outcome::Accepted);
        }
        match (had_failed, failed) {
            (false, true) => {
                warn!(node = node.name(), outcome:% = outcome; "node marked unhealthy");
            }
            (true, false) => info!(node = node.name(); "node is healthy again"),
            _ => {}
        }
    }

    /// First the node that received the batch, then the nodes that work, with that of the service first, then the
    /// failed ones, with the one that failed longest ago first. This does not change the node of the service.
    fn by_preference(&self, service: &str, batch_id: &str) -> Vec<usize> {
        let (routes, now) = (&self.0.routes, self.monotonic());
        let mut nodes = match service {
            "" => (0..self.0.nodes.len()).collect(),
            service => routes.candidates(service).to_vec(),
        };
        if nodes.len() > 1 {
            let (received, current) = (routes.received(batch_id), routes.current(service));
            nodes.sort_by_cached_key(|node| {
                let failed_at = self.0.nodes[*node].lock().failed_at(now);
                (Some(*node) != received, failed_at, Some(*node) != current)
            });
        }
        nodes
    }

    /// Records that a request to the node of this name was answered.
    pub fn answered(&self, name: &str) {
        let (now, mut is_back) = (self.monotonic(), false);
        for node in self.named(name) {
            let mut state = node.lock();
            is_back |= state.unanswered(now).is_some();
            state.contact.answered(now);
        }
        if is_back {
            self.node_returned();
        }
    }

    /// Records that a request to the node was not answered, or that a connection to it broke.
    pub fn failed(&self, name: &str, reason: &str) {
        self.unanswered(name, self.monotonic(), reason);
    }

    /// Records that the node has not answered a request that was sent at this time.
    pub fn unanswered(&self, name: &str, sent_at: MonotonicTime, reason: &str) {
        let now = self.monotonic();
        for node in self.named(name) {
            node.lock().contact.unanswered(sent_at, now, reason);
            node.connection_failed();
        }
    }

    /// Changes each time a node comes back after it was out or had not confirmed its ledger.
    pub fn returns(&self) -> watch::Receiver<u64> {
        self.0.returns.subscribe()
    }

    pub(crate) fn node_returned(&self) {
        self.0.returns.send_modify(|count| *count += 1);
    }

    /// When it was last noticed that the node does not answer.
    pub fn unanswered_at(&self, name: &str) -> Option<MonotonicTime> {
        self.named(name).find_map(|node| node.lock().contact.unanswered_at())
    }

    /// Records that a batch of this service is at its nodes, or on its way to them, so that answers or events are
    /// expected from them.
    pub(crate) fn expect_of(&self, service: &str) {
        let now = self.monotonic();
        self.nodes_of(service).into_iter().for_each(|node| node.lock().contact.expect(now));
    }

    /// Whether the node should be asked now, only to see whether it answers. `asked_at` is when it was last asked for
    /// this reason.
    pub fn should_ask(&self, node: &Node, asked_at: Option<MonotonicTime>) -> bool {
        node.lock().contact.should_ask(asked_at, self.monotonic())
    }

    /// The nodes that do not answer, or do not report their ledger.
    pub fn outages(&self) -> Vec<Outage> {
        self.outages_at(self.0.nodes.iter())
    }

    /// Those of the nodes on which batches of this service depend that do not answer, or do not report their ledger.
    pub fn outages_of(&self, service: &str) -> Vec<Outage> {
        self.outages_at(self.nodes_of(service).into_iter())
    }

    fn outages_at<'a>(&self, nodes: impl Iterator<Item = &'a Node>) -> Vec<Outage> {
        let mut outages: Vec<_> = nodes.filter_map(|node| self.outage(node)).collect();
        outages.dedup_by(|one, other| one.node == other.node);
        outages
    }

    /// The outage of a node, if it does not answer or does not report its ledger.
    pub fn outage(&self, node: &Node) -> Option<Outage> {
        let state = node.lock();
        let (kind, lasted, reason) = state.outage(self.monotonic())?;
        let since = self.0.clock.now().minus(lasted);
        let (node, reason) = (node.name().to_owned(), reason.to_owned());
        Some(Outage { node, kind, since, lasted, reason })
    }

    pub(crate) fn is_out(&self, node: usize) -> bool {
        self.0.nodes[node].lock().outage(self.monotonic()).is_some()
    }

    /// The present time of the clock that measures failures.
    pub fn monotonic(&self) -> MonotonicTime {
        self.0.clock.monotonic()
    }
}

/// An empty service id stands for all nodes.
impl StatusUrlResolver for NodePool {
    fn status_urls(&self, service_id: &str, batch_id: &str) -> Vec<String> {
        let nodes = self.by_preference(service_id, batch_id).into_iter();
        nodes.map(|node| self.0.nodes[node].url().to_owned()).collect()
    }
}

/// Without nodes.
impl Default for NodePool {
    fn default() -> Self {
        Self::with_options(NodePoolOptions::default())
    }
}

impl PartialEq for NodePool {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.nodes.is_empty() && other.0.nodes.is_empty())
    }
}

impl Eq for NodePool {}

impl fmt::Debug for NodePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.nodes.iter().map(Node::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::{GlobalScopeId, ManualClock, ServiceScopeId, Timestamp};

    use super::*;
    use crate::{IdentityAnswer, UrlResolver};

    const RETRY_AFTER: Duration = Duration::from_secs(30);

    /// The nodes `a`, `b` and `c`. The only service begins with `a`.
    fn nodes() -> (NodePool, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let pool = NodePool::with_options(NodePoolOptions {
            urls: ["a", "b", "c"].map(str::to_owned).to_vec(),
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        (pool, clock)
    }

    fn next(pool: &NodePool, count: usize) -> String {
        (0..count).map(|_| pool.resolver().url(&GlobalScopeId)).collect()
    }

    fn urls(pool: &NodePool, batch: &str) -> String {
        pool.status_urls("global", batch).concat()
    }

    #[test]
    fn service_stays_with_its_node_while_that_is_healthy() {
        let (nodes, _) = nodes();
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected, Outcome::Parked] {
            assert_eq!(next(&nodes, 2), "aa");
            nodes.sent("1", "a", outcome);
        }
        // A failure of another node is not a reason either.
        nodes.sent("1", "b", Outcome::NotSent);
        assert_eq!(next(&nodes, 2), "aa");
    }

    #[test]
    fn service_stays_with_the_node_that_replaced_a_failed_one() {
        for outcome in [Outcome::NotSent, Outcome::Ambiguous, Outcome::Refused] {
            let (nodes, clock) = nodes();
            nodes.sent("1", "a", outcome);
            assert_eq!(next(&nodes, 2), "bb", "{outcome}");
            nodes.sent("1", "a", Outcome::Accepted);
            clock.advance(RETRY_AFTER);
            assert_eq!(next(&nodes, 2), "bb", "{outcome}");
            nodes.sent("1", "b", Outcome::NotSent);
            assert_eq!(next(&nodes, 2), "cc", "{outcome}");
            nodes.sent("1", "c", Outcome::NotSent);
            assert_eq!(next(&nodes, 2), "aa", "{outcome}");
        }
    }

    #[test]
    fn services_are_spread_over_the_nodes() {
        let spread = || {
            let urls = ["a", "b", "c"].map(str::to_owned).to_vec();
            NodePool::with_options(NodePoolOptions { urls, spread: true, ..Default::default() })
        };
        let (nodes, again) = (spread().resolver(), spread().resolver());
        let mut counts: HashMap<String, usize> = HashMap::new();
        for number in 0..300 {
            let scope: ServiceScopeId = format!("circuit::{number}").parse().unwrap();
            let url = nodes.url(&scope);
            assert_eq!((nodes.url(&scope), again.url(&scope)), (url.clone(), url.clone()));
            *counts.entry(url).or_default() += 1;
        }
        assert!(counts.len() == 3 && counts.values().all(|count| *count > 50), "{counts:?}");
    }

    #[test]
    fn unhealthy_node_is_tried_again_with_one_batch() {
        let (nodes, clock) = nodes();
        for node in ["c", "b", "a"] {
            nodes.sent("1", node, Outcome::NotSent);
        }
        clock.advance(RETRY_AFTER);
        assert_eq!(next(&nodes, 3), "abc");
    }

    #[test]
    fn node_that_answers_is_healthy_again() {
        for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
            let (nodes, _) = nodes();
            nodes.sent("1", "a", Outcome::Ambiguous);
            nodes.sent("1", "a", outcome);
            assert_eq!(next(&nodes, 1), "a", "{outcome}");
        }
    }

    #[test]
    fn if_all_are_unhealthy_the_longest_failed_is_used() {
        let (nodes, clock) = nodes();
        for node in ["b", "c", "a"] {
            nodes.sent("1", node, Outcome::NotSent);
            clock.advance(Duration::from_secs(1));
        }
        assert_eq!(next(&nodes, 1), "b");
        nodes.sent("1", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        assert_eq!(next(&nodes, 1), "c");
    }

    #[test]
    fn unhealthy_time_does_not_follow_the_time_of_day() {
        let (nodes, clock) = nodes();
        clock.set(Timestamp::default().plus(Duration::from_hours(1)));
        for node in ["a", "b"] {
            nodes.sent("1", node, Outcome::NotSent);
        }
        clock.set(Timestamp::default());
        assert_eq!(next(&nodes, 1), "c");
        clock.set(Timestamp::default().plus(Duration::from_hours(2)));
        nodes.sent("1", "c", Outcome::NotSent);
        clock.set(Timestamp::default());
        clock.advance(RETRY_AFTER);
        assert_eq!(next(&nodes, 2), "ca");
    }

    #[test]
    fn first_node_that_accepted_a_batch_is_asked_first() {
        let (nodes, _) = nodes();
        nodes.sent("1", "b", Outcome::Ambiguous);
        nodes.sent("1", "c", Outcome::Ambiguous);
        nodes.sent("2", "a", Outcome::Busy);
        nodes.sent("2", "b", Outcome::Busy);
        nodes.sent("2", "c", Outcome::Busy);
        assert_eq!(urls(&nodes, "1"), "bac");
        nodes.sent("1", "c", Outcome::Accepted);
        nodes.sent("1", "a", Outcome::Accepted);
        assert_eq!((urls(&nodes, "1"), urls(&nodes, "2")), ("cab".to_owned(), "abc".to_owned()));
    }

    #[test]
    fn status_urls_begin_with_the_receiving_node() {
        let (nodes, clock) = nodes();
        assert_eq!(urls(&nodes, "1"), "abc");
        nodes.sent("1", "b", Outcome::Accepted);
        assert_eq!(urls(&nodes, "1"), "bac");
        nodes.sent("2", "b", Outcome::NotSent);
        clock.advance(Duration::from_secs(1));
        nodes.sent("2", "a", Outcome::NotSent);
        assert_eq!((urls(&nodes, "1"), urls(&nodes, "2")), ("bca".to_owned(), "cba".to_owned()));
        // Status URLs do not change the node of a service.
        assert_eq!(next(&nodes, 1), "c");
        for node in ["a", "b"] {
            nodes.sent("3", node, Outcome::Busy);
        }
        assert_eq!(urls(&nodes, "3"), "cab", "the node of the service comes first");
    }

    #[test]
    fn report_about_an_unknown_address_is_ignored() {
        let (nodes, _) = nodes();
        nodes.sent("1", "elsewhere", Outcome::Accepted);
        assert_eq!(urls(&nodes, "1"), "abc");
        assert_eq!(next(&nodes, 1), "a");
    }

    #[test]
    fn node_that_did_not_answer_any_part_comes_last() {
        let (nodes, clock) = nodes();
        nodes.failed("a", "reset");
        assert_eq!((next(&nodes, 1), urls(&nodes, "1")), ("a".to_owned(), "abc".to_owned()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(urls(&nodes, "1"), "bca");
        assert_eq!(next(&nodes, 2), "bb");
        nodes.answered("a");
        nodes.sent("1", "b", Outcome::NotSent);
        assert_eq!((next(&nodes, 1), urls(&nodes, "1")), ("c".to_owned(), "cab".to_owned()));
    }

    #[test]
    fn node_that_is_out_is_tried_again_without_an_answer() {
        let (nodes, clock) = nodes();
        for node in ["c", "b", "a"] {
            nodes.failed(node, "reset");
        }
        clock.advance(RETRY_AFTER);
        assert_eq!(next(&nodes, 1), "a");
    }

    #[test]
    fn only_confirmed_nodes_are_listed_as_confirmed() {
        let (nodes, clock) = nodes();
        let confirmed = || nodes.confirmed().status_urls("global", "1").concat();
        assert_eq!(confirmed(), "");
        for name in ["c", "a"] {
            let node = nodes.node(name).unwrap();
            nodes.told_identity(node, IdentityAnswer::Confirmed, clock.monotonic(), 0);
        }
        assert_eq!((confirmed(), nodes.is_confirmed("b")), ("ac".to_owned(), false));
        nodes.close();
        assert_eq!((confirmed(), nodes.is_confirmed("a")), (String::new(), false));
    }

    /// Services at nodes of their own, all others at `two`.
    fn own_nodes(urls: &[&str]) -> NodePool {
        NodePool::with_options(NodePoolOptions {
            urls: urls.iter().map(ToString::to_string).collect(),
            services: vec![("a::b".parse().unwrap(), "http://u:secret@one".to_owned())],
            ..NodePoolOptions::default()
        })
    }

    #[test]
    fn other_services_have_the_default_address() {
        let pool = own_nodes(&["http://two"]);
        let url = |service: &str| pool.resolver().url(&service.parse::<ServiceScopeId>().unwrap());
        assert_eq!([url("a::b"), url("a::c")], ["http://u:secret@one", "http://two"]);
        assert_eq!(pool.status_urls("a::b", "1"), ["http://u:secret@one"]);
        assert_eq!(pool.status_urls("a::c", "1"), ["http://two"]);
        assert_eq!(pool.status_urls("", ""), ["http://two", "http://u:secret@one"]);
        assert_eq!(format!("{pool:?}"), r#"["http://two", "http://one"]"#);
    }

    #[test]
    fn only_node_of_a_service_is_used_also_after_failures() {
        let pool = own_nodes(&[]);
        pool.sent("1", "http://u:secret@one", Outcome::NotSent);
        assert_eq!(pool.take_url("a::b"), Some("http://u:secret@one"));
    }

    #[test]
    fn service_without_an_address_has_a_reason() {
        let pool = own_nodes(&[]);
        assert_eq!(
            pool.resolver().url(&"a::c".parse::<ServiceScopeId>().unwrap()),
            "no-address: no address is configured for the service: a::c"
        );
        assert!(pool.status_urls("a::c", "1").is_empty());
    }

    #[test]
    fn failure_is_shown_soon_unless_the_node_answers() {
        let (nodes, clock) = nodes();
        nodes.failed("a", "refused");
        assert_eq!(nodes.outages(), []);
        clock.advance(Duration::from_millis(1_500));
        nodes.failed("a", "reset");
        nodes.failed("elsewhere", "reset");
        clock.advance(Duration::from_secs(1));
        let [outage] = &nodes.outages()[..] else { panic!("{:?}", nodes.outages()) };
        let lasted = Duration::from_millis(2_500);
        assert_eq!((outage.lasted, outage.reason.as_str()), (lasted, "reset"));
        assert_eq!(outage.to_string(), "a has not answered for 2 s");
        assert_eq!(outage.since.plus(outage.lasted), clock.now());
        nodes.answered("a");
        assert_eq!(nodes.outages(), []);
    }

    #[test]
    fn node_that_does_not_report_its_ledger_counts_as_answering() {
        let (nodes, clock) = nodes();
        let answer = IdentityAnswer::Unusable("a web page".to_owned());
        nodes.told_identity(nodes.node("a").unwrap(), answer, clock.monotonic(), 0);
        clock.advance(Duration::from_secs(2));
        let text = |nodes: &NodePool| nodes.outages()[0].to_string();
        assert_eq!(text(&nodes), "a has not reported which ledger it belongs to for 2 s");
        nodes.failed("a", "reset");
        assert_eq!(text(&nodes), "a has not answered for 2 s");
        assert_eq!(nodes.outages().len(), 1);
    }

    #[test]
    fn service_depends_on_its_nodes_and_peers() {
        let clock = Arc::new(ManualClock::default());
        let pool = NodePool::with_options(NodePoolOptions {
            urls: vec!["http://a:1/path".to_owned()],
            services: vec![("g::h".parse().unwrap(), "http://b:1".to_owned())],
            peers: vec![("c::d".parse().unwrap(), "http://p:1".to_owned())],
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        let names = |outages: Vec<Outage>| -> Vec<String> {
            outages.into_iter().map(|outage| outage.node).collect()
        };
        ["http://b:1", "http://p:1"].iter().for_each(|node| pool.failed(node, "refused"));
        clock.advance(Duration::from_secs(2));
        assert_eq!(names(pool.outages()), ["http://b:1", "http://p:1"]);
        assert_eq!(names(pool.outages_of("c::d")), ["http://p:1"]);
        assert_eq!(names(pool.outages_of("e::f")), [""; 0]);
        pool.failed("http://a:1", "reset");
        clock.advance(Duration::from_secs(2));
        assert_eq!(names(pool.outages_of("e::f")), ["http://a:1"]);
    }
}
