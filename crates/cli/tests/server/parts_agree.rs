//! Whatever a node fails with, all that is shown of it says the same, and batches go elsewhere.

use std::{thread, time::Duration};

use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    http::{request, send},
    wait::wait_until,
};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer};

/// How the first of two nodes fails, and what is said of it then.
struct Failure {
    name: &'static str,
    provoke: fn(&LedgerSim),
    /// `None`: nothing, because the node answers.
    problem: Option<&'static str>,
    /// It is not shown as a node that a batch waits for.
    is_unused: bool,
}

const NOTHING: Failure =
    Failure { name: "nothing", provoke: |_| (), problem: None, is_unused: false };
const UNANSWERED: &str = "has not answered for";
const UNIDENTIFIED: &str = "has not reported which ledger it belongs to";
const OTHER_LEDGER: Failure = Failure {
    name: "it belongs to another ledger",
    problem: Some("belongs to another ledger"),
    is_unused: true,
    ..NOTHING
};

const FAILURES: [Failure; 7] = [
    NOTHING,
    Failure {
        name: "it does not answer",
        provoke: LedgerSim::freeze,
        problem: Some(UNANSWERED),
        ..NOTHING
    },
    Failure {
        name: "it breaks connections",
        provoke: LedgerSim::kill,
        problem: Some(UNANSWERED),
        ..NOTHING
    },
    Failure {
        name: "it answers with web pages",
        provoke: |node| node.inject(Fault::OtherServer { status: 200 }, When::Always),
        problem: Some(UNIDENTIFIED),
        ..NOTHING
    },
    Failure {
        name: "it does not tell its ledger",
        provoke: |node| node.inject(Fault::OtherServer { status: 404 }, When::Always),
        problem: Some(UNIDENTIFIED),
        ..NOTHING
    },
    OTHER_LEDGER,
    Failure {
        name: "it takes no submission",
        provoke: |node| node.inject(Fault::ResetBefore, When::Always),
        ..NOTHING
    },
];

impl Failure {
    /// How many of the two nodes work.
    fn working(&self) -> u64 {
        2 - u64::from(self.problem.is_some())
    }
}

/// What each part tells of a problem of the node; empty without one.
#[derive(Debug)]
struct Views {
    health: String,
    /// The interface, as the dashboard reads it.
    ledgers: String,
    top: String,
    /// Why the batch waits.
    explanation: String,
    doctor: String,
    /// How many nodes work, by the metrics, the health and the interface.
    working: [u64; 3],
}

struct Scenario {
    harness: BatchHarness,
    node: LedgerSim,
    server: BatchServer,
    batch: SignedBatch,
    urls: String,
}

impl Scenario {
    /// A server with the node and another one, and a batch that is under way for long.
    fn start(failure: &Failure) -> Self {
        let slow = |ledger: LedgerSimBuilder| ledger.pending_for(Duration::from_hours(1));
        let harness = BatchHarness::sawtooth_with(slow);
        // The database is bound to the ledger of the other node.
        harness.serve().stop();
        let node = if failure.is_unused {
            LedgerSim::sawtooth()
        } else {
            LedgerSim::sawtooth().join_chain_of(&harness.ledger, Duration::ZERO)
        };
        let node = slow(node).start().unwrap();
        (failure.provoke)(&node);
        let urls = format!("{},{}", node.url(), harness.ledger.url());
        let server = harness.serve_with(&[("--ledger-urls", &urls)]);
        wait_until("the health shows which nodes work", || {
            let part = server.get("/health")["parts"]["ledger"].clone();
            let is_named = part["reason"].to_string().contains(&node.url());
            part["answering"] == failure.working() && is_named == failure.problem.is_some()
        });
        Self { harness, node, server, batch: signed_batch("global", 0), urls }
    }

    fn run_command(&self, arguments: &[&str]) -> String {
        let urls = [("GRID_BATCH_LEDGER_URLS", &*self.urls)];
        self.harness.run_command_with(arguments, &urls).stdout
    }

    /// The text, if it is about the node.
    fn about_node(&self, text: &str) -> String {
        if text.contains(&self.node.url()) { text.to_owned() } else { String::new() }
    }

    fn views(&self) -> Views {
        let health = self.server.get("/health")["parts"]["ledger"].clone();
        let ledgers = self.server.get("/v1/ledgers");
        let nodes = ledgers["data"][0]["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["url"] == self.node.url()).unwrap();
        let explained = self.server.get(&format!("/v1/batches/{}/explain", self.batch.batch_id));
        let url = format!("http://{}", self.server.address);
        let doctor = self.run_command(&["doctor", "--json"]);
        let doctor: Value = serde_json::from_str(&doctor).unwrap();
        let findings = doctor["findings"].as_array().unwrap().iter();
        let found = findings.filter(|it| it["outcome"] == "problem").map(Value::to_string);
        let answering = nodes.iter().filter(|node| node["answering"] == true).count();
        Views {
            health: self.about_node(&health["reason"].to_string()),
            ledgers: node["problem"].as_str().unwrap_or_default().to_owned(),
            top: self.about_node(&self.run_command(&["top", "--once", "--url", &url])),
            explanation: self.about_node(explained["text"].as_str().unwrap()),
            doctor: self.about_node(&found.collect::<String>()),
            working: [
                self.working_by_metrics(),
                health["answering"].as_u64().unwrap(),
                answering as u64,
            ],
        }
    }

    fn working_by_metrics(&self) -> u64 {
        let response = send(self.server.address, &request("GET", "/metrics", &[], b"")).unwrap();
        let name = r#"grid_batch_health_number{part="ledger",number="answering"} "#;
        let line = response.body.lines().find_map(|line| line.strip_prefix(name));
        line.expect("the metrics have the number").parse().unwrap()
    }
}

fn assert_parts_agree(failure: &Failure) {
    let scenario = Scenario::start(failure);
    let Scenario { harness, node, server, batch, .. } = &scenario;
    server.submit(std::slice::from_ref(batch));
    let works = failure.name == NOTHING.name;
    let receiver = if works { node } else { &harness.ledger };
    wait_until("a node has the batch", || receiver.times_received(&batch.batch_id) == 1);
    if works || failure.problem.is_some() {
        let other = if works { &harness.ledger } else { node };
        assert_eq!(other.times_received(&batch.batch_id), 0, "{}", failure.name);
    }
    let views = scenario.views();
    assert!(server.get("/blocks?limit=1")["data"].is_array(), "a node that works answers reads");
    let context = format!("{}: {views:#?}", failure.name);
    assert_eq!(views.working, [failure.working(); 3], "{context}");
    match failure.problem {
        Some(problem) => {
            for view in [&views.health, &views.ledgers, &views.top] {
                assert!(view.contains(problem), "{context}");
            }
            assert_eq!(views.explanation.contains(problem), !failure.is_unused, "{context}");
            assert!(!views.doctor.is_empty(), "{context}");
        }
        None => {
            let all =
                [&views.health, &views.ledgers, &views.top, &views.explanation, &views.doctor];
            assert_eq!(all, [""; 5], "{context}");
        }
    }
    scenario.server.process.kill();
}

#[test]
fn all_parts_say_the_same_of_a_node_that_fails() {
    thread::scope(|scope| {
        for failure in &FAILURES {
            scope.spawn(|| assert_parts_agree(failure));
        }
    });
}
