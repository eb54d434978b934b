//! A node that does not answer is shown within seconds: in `/health`, in explanations, in `top` and in the log.
//! While it does not answer, nothing is offered that guesses what the ledger did.

use std::time::{Duration, Instant};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::{wait_for, wait_until},
};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// From the failure until it is shown. It is at most five seconds on a machine that is not busy.
const SHOWN_WITHIN: Duration = Duration::from_secs(8);
/// What is only a guess as long as a node does not answer.
const GUESSES: [&str; 3] = ["resubmit", "end_committed", "end_invalid"];
const PEER: &str = "p0000";
/// Nothing ends or is held within a test.
const FLAGS: &[(&str, &str)] = &[
    ("--ledger-request-timeout", "12s"),
    ("--testing-sending-limit", "13s"),
    ("--testing-total-limit", "14s"),
    ("--testing-drain-limit", "1s"),
    ("--poll-interval", "1s"),
    ("--testing-longest-interval", "60s"),
    ("--testing-quiet-after", "60s"),
    ("--testing-accept-absence-after", "30s"),
    ("--poll-hold-after", "120s"),
];

/// A server whose ledger has a batch that it does not end.
struct Fixture {
    harness: BatchHarness,
    peer: Option<LedgerSim>,
    server: BatchServer,
    batches: Vec<SignedBatch>,
}

impl Fixture {
    /// A circuit of two nodes.
    fn circuit() -> Self {
        let configure = |builder: LedgerSimBuilder| {
            let forever = Duration::from_hours(1);
            builder.valid_for(forever).coordinator_timeout(forever)
        };
        let harness = BatchHarness::scabbard_with(1, configure);
        let service: ServiceScopeId = harness.services[0].parse().unwrap();
        let peer: ServiceScopeId = format!("{}::{PEER}", service.circuit()).parse().unwrap();
        let beta = configure(LedgerSim::scabbard([peer.clone()]));
        let beta = beta.join_circuit_of(&harness.ledger, [(service, peer)]).start().unwrap();
        let peers = format!("{}={PEER}@{}", harness.services[0], beta.url());
        let flags = [FLAGS, &[("--services-peers", peers.as_str())]].concat();
        let server = harness.serve_with(&flags);
        Self::with_batches(harness, Some(beta), server, BatchState::Valid)
    }

    fn sawtooth() -> Self {
        let harness =
            BatchHarness::sawtooth_with(|ledger| ledger.pending_for(Duration::from_hours(1)));
        let server = harness.serve_with(FLAGS);
        Self::with_batches(harness, None, server, BatchState::Pending)
    }

    fn with_batches(
        harness: BatchHarness,
        peer: Option<LedgerSim>,
        server: BatchServer,
        state: BatchState,
    ) -> Self {
        wait_until("every node answers", || {
            server.get("/health")["parts"]["ledger"]["status"] == "ok"
        });
        let batches = signed_batches(&harness.services, 3);
        server.submit(&batches);
        let store = harness.store();
        wait_until("the first batch is at the ledger", || count_in_state(&store, state) == 1);
        Self { harness, peer, server, batches }
    }

    fn explain(&self, batch: &SignedBatch) -> Value {
        self.server.get(&format!("/v1/batches/{}/explain", batch.batch_id))
    }

    fn ledger_part(&self) -> Value {
        self.server.get("/health")["parts"]["ledger"].clone()
    }

    fn top(&self) -> String {
        let url = format!("http://{}", self.server.address);
        let output =
            self.harness.run_command(&["top", "--once", "--interval", "100ms", "--url", &url]);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        output.stdout
    }

    /// Waits until the node is shown everywhere, and prints how long that took.
    fn assert_shown(&self, url: &str, failed: Instant) {
        let part = wait_for("the health names the node", || {
            Some(self.ledger_part()).filter(|part| part["status"] == "degraded")
        });
        let shown = failed.elapsed();
        println!("{url} is in the health after {shown:.2?}: {part}");
        assert!(shown < SHOWN_WITHIN, "{shown:?}");
        let reason = part["reason"].as_str().unwrap();
        assert!(reason.contains(url) && reason.contains("has not answered for"), "{reason}");
        assert_eq!(part["answering"].as_u64().unwrap() + 1, part["nodes"].as_u64().unwrap());
        self.assert_no_guess_is_offered(url);
        let top = self.top();
        assert!(top.contains(url) && top.contains("has not answered"), "{top}");
        assert!(failed.elapsed() < 2 * SHOWN_WITHIN, "{:?}", failed.elapsed());
        self.server.process.wait_for_log("the node does not answer");
    }

    fn assert_no_guess_is_offered(&self, url: &str) {
        for batch in &self.batches {
            let explanation = self.explain(batch);
            let text = explanation["text"].as_str().unwrap();
            assert!(text.contains(url) && text.contains("has not answered for"), "{text}");
            assert_eq!(explanation["outages"][0]["node"], url, "{explanation}");
            assert_eq!(self.guesses(batch), [""; 0], "{explanation}");
        }
        let service = self
            .server
            .get(&format!("/v1/services/{}/explain", self.harness.services[0].replace(':', "%3A")));
        assert!(service["text"].as_str().unwrap().contains(url), "{service}");
    }

    fn guesses(&self, batch: &SignedBatch) -> Vec<String> {
        let explanation = self.explain(batch);
        let actions = explanation["actions"].as_array().unwrap().iter();
        let verbs = actions.map(|action| action["verb"].as_str().unwrap().to_owned());
        verbs.filter(|verb| GUESSES.contains(&verb.as_str())).collect()
    }

    fn assert_recovers(&self, url: &str) {
        let back = Instant::now();
        wait_until("every node answers", || self.ledger_part()["status"] == "ok");
        println!("{url} is shown as answering again after {:.2?}", back.elapsed());
        assert!(back.elapsed() < SHOWN_WITHIN, "{:?}", back.elapsed());
        self.server.process.wait_for_log("the node works again");
        let top = self.top();
        assert!(!top.contains("has not answered"), "{top}");
        let explanation = self.explain(&self.batches[0]);
        assert_eq!(explanation["outages"].as_array().map(Vec::len), Some(0), "{explanation}");
    }
}

#[test]
fn killed_node_is_shown_within_seconds() {
    let fixture = Fixture::circuit();
    assert_eq!(fixture.guesses(&fixture.batches[0]), GUESSES);
    let url = fixture.harness.ledger.url();
    fixture.harness.ledger.kill();
    fixture.assert_shown(&url, Instant::now());
    fixture.harness.ledger.start_again();
    fixture.assert_recovers(&url);
    fixture.server.stop_with("TERM");
}

#[test]
fn killed_peer_is_shown_within_seconds() {
    let fixture = Fixture::circuit();
    let peer = fixture.peer.as_ref().unwrap();
    peer.kill();
    fixture.assert_shown(&peer.url(), Instant::now());
    peer.start_again();
    fixture.assert_recovers(&peer.url());
    fixture.server.stop_with("TERM");
}

#[test]
fn frozen_peer_is_shown_within_seconds() {
    let fixture = Fixture::circuit();
    let peer = fixture.peer.as_ref().unwrap();
    peer.freeze();
    fixture.assert_shown(&peer.url(), Instant::now());
    peer.thaw();
    fixture.assert_recovers(&peer.url());
    fixture.server.stop_with("TERM");
}

#[test]
fn killed_validator_is_shown_within_seconds() {
    let fixture = Fixture::sawtooth();
    let url = fixture.harness.ledger.url();
    fixture.harness.ledger.crash_validator(Duration::from_secs(300));
    fixture.assert_shown(&url, Instant::now());
    fixture.harness.ledger.start_validator();
    fixture.assert_recovers(&url);
    fixture.server.stop_with("TERM");
}

/// Nothing is under way: no request fails, and no event is due.
#[test]
fn frozen_node_of_an_idle_server_is_shown() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let ledger = || server.get("/health")["parts"]["ledger"].clone();
    wait_until("the node answers", || ledger()["status"] == "ok");
    harness.ledger.freeze();
    let frozen = Instant::now();
    wait_until("the node is shown", || ledger()["status"] == "degraded");
    println!("shown after {:.2?}", frozen.elapsed());
    assert!(ledger()["reason"].as_str().unwrap().contains(&harness.ledger.url()));
    harness.ledger.thaw();
    wait_until("the node answers again", || ledger()["status"] == "ok");
    server.stop();
}

#[test]
fn shown_url_of_a_node_has_no_secret() {
    let harness = BatchHarness::scabbard(1);
    let peer = format!("{}=p0000@http://user:hidden@127.0.0.1:1/hidden", harness.services[0]);
    let server = harness.serve_with(&[("--services-peers", &peer)]);
    server.submit(&signed_batches(&harness.services, 1));
    let ledger = || server.get("/health")["parts"]["ledger"].clone();
    wait_until("the peer is shown", || ledger()["status"] == "degraded");
    let explanation = format!("/v1/services/{}/explain", harness.services[0].replace(':', "%3A"));
    let shown = ["/health", "/v1/ledgers", &explanation].map(|path| server.get(path).to_string());
    let ledgers = server.get("/v1/ledgers");
    let mut nodes = ledgers["data"][0]["nodes"].as_array().unwrap().iter();
    assert!(nodes.all(|node| node["problem"].is_string() == node["problem_since"].is_string()));
    let log = server.stop_with("TERM").stderr;
    for text in shown.iter().chain([&log]) {
        assert!(text.contains("127.0.0.1:1") && !text.contains("hidden"), "{text}");
    }
}

/// What is looked for, and until when, is told.
#[test]
fn explanation_tells_until_when_evidence_is_looked_for() {
    let fixture = Fixture::circuit();
    let text = fixture.explain(&fixture.batches[0])["text"].as_str().unwrap().to_owned();
    assert!(text.contains("it was last reported as valid"), "{text}");
    let held = "Without any, the batch is held for an operator in";
    assert!(text.contains("evidence of attempt ") && text.contains(held), "{text}");
    fixture.server.stop_with("TERM");
}
