//! All components agree about a node, however it fails.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::PollPace;
use grid_batch_core::{Clock, ManualClock, ServiceId};
use grid_batch_nodes::{
    IdentityAnswer, NodePool, NodePoolOptions, RequestLimits, StatusUrlResolver, UrlResolver,
};

const SECOND: Duration = Duration::from_secs(1);
const A: &str = "http://a";
const B: &str = "http://b";

/// The nodes A and B for every service, except for those at A only. Both have confirmed their ledger.
struct Parts {
    clock: Arc<ManualClock>,
    pool: NodePool,
}

/// What each component says about the node A.
#[derive(Debug, PartialEq, Eq)]
struct Views {
    /// Submitter: the next batch of a service with several nodes is sent to it.
    is_sent_to: bool,
    /// Polling, evidence and passing through: it is asked before the other one.
    is_asked_first: bool,
    /// The same, among the nodes that have confirmed their ledger.
    is_used: bool,
    /// Polling and asking ahead: how many requests may be in flight for services that have no other node.
    requests: usize,
    /// Health, metrics, explanations, the dashboard and `doctor`: it is shown as one that does not answer.
    is_shown: bool,
}

const WORKS: Views =
    Views { is_sent_to: true, is_asked_first: true, is_used: true, requests: 2, is_shown: false };

const OUT: Views =
    Views { is_sent_to: false, is_asked_first: false, is_used: true, requests: 1, is_shown: true };

fn service(name: &str) -> ServiceId {
    name.parse().unwrap()
}

impl Parts {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let pool = NodePool::with_options(NodePoolOptions {
            urls: vec![A.to_owned(), B.to_owned()],
            services: ["own::1", "own::2"].map(|id| (service(id), A.to_owned())).to_vec(),
            clock: Arc::<ManualClock>::clone(&clock),
            ..NodePoolOptions::default()
        });
        let parts = Self { clock, pool };
        [A, B].into_iter().for_each(|node| parts.tells(node, IdentityAnswer::Confirmed));
        parts
    }

    fn tells(&self, url: &str, answer: IdentityAnswer) {
        let node = self.pool.node(url).unwrap();
        let failures = node.identity().failures();
        self.pool.told_identity(node, answer, self.clock.monotonic(), failures);
    }

    fn views(&self) -> Views {
        let shared = service("shared::1");
        let limits =
            RequestLimits::new(self.pool.clone(), PollPace { interval: SECOND, longest: SECOND });
        limits.set_connections(16);
        let may_start = |id: &&str| {
            let group = limits.group(id);
            limits.may_start(group).then(|| limits.start(group)).is_some()
        };
        let outages = self.pool.outages();
        let explained = self.pool.outages_of("own::1");
        assert_eq!(outages, explained, "health and explanations show the same");
        Views {
            is_asked_first: self.pool.status_urls(shared.as_str(), "1")[0] == A,
            is_used: self.pool.confirmed().status_urls("own::1", "1") == [A],
            requests: ["own::1", "own::2"].iter().filter(|id| may_start(id)).count(),
            is_shown: !outages.is_empty(),
            is_sent_to: self.pool.resolver::<ServiceId>().url(&shared) == A,
        }
    }
}

#[test]
fn all_parts_say_the_same_of_a_node_that_fails() {
    use IdentityAnswer::{Confirmed, Failed, OtherLedger, Unusable};
    let failed = || Failed("refused".to_owned());
    let not_used = |views: Views| Views { is_used: false, ..views };
    type Provoke = Box<dyn Fn(&Parts)>;
    let failures: [(&str, Provoke, Views); 7] = [
        ("nothing", Box::new(|_| {}), WORKS),
        (
            "a request of any part is not answered",
            Box::new(|parts| parts.pool.failed(A, "reset")),
            OUT,
        ),
        (
            "a question of the health is not answered",
            Box::new(|parts| parts.pool.unanswered(A, parts.clock.monotonic(), "late")),
            OUT,
        ),
        (
            "it does not report its ledger",
            Box::new(move |parts| parts.tells(A, failed())),
            not_used(OUT),
        ),
        (
            "it answers, but not as a node of the ledger",
            Box::new(|parts| parts.tells(A, Unusable("a web page".to_owned()))),
            not_used(OUT),
        ),
        (
            "it belongs to another ledger, which is shown by itself",
            Box::new(|parts| parts.tells(A, OtherLedger("other".to_owned()))),
            Views { is_sent_to: false, is_asked_first: false, ..not_used(WORKS) },
        ),
        (
            "it answers, but takes no batch",
            Box::new(|parts| {
                let resolver = parts.pool.resolver::<ServiceId>();
                resolver.report("1", A, Outcome::NotSent);
                parts.pool.answered(A);
            }),
            Views { is_sent_to: false, is_asked_first: false, ..WORKS },
        ),
    ];
    for (failure, provoke, expected) in failures {
        let parts = Parts::new();
        provoke(&parts);
        parts.clock.advance(SECOND);
        assert_eq!(parts.views(), expected, "{failure}");
        parts.tells(A, Confirmed);
        parts.pool.answered(A);
        parts.pool.resolver::<ServiceId>().report("2", A, Outcome::Accepted);
        parts.pool.resolver::<ServiceId>().report("2", B, Outcome::NotSent);
        assert_eq!(parts.views(), WORKS, "after: {failure}");
    }
}
