//! Measures with the default settings how soon an outage is shown, and how soon a service goes on when the node is
//! back. It takes minutes, so it is not run with the other tests:
//! `cargo test -p grid-batch --test server -- --ignored --nocapture outage_times`.

use std::{
    fmt,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// A genuine circuit ends two to three batches a second.
const SCABBARD_STEP: Duration = Duration::from_millis(200);
/// A genuine node with the devmode engine makes a block each second.
const BLOCK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a REST API waits for its validator by default.
const REST_TIMEOUT: Duration = Duration::from_secs(300);
/// Longer than all limits of the default settings.
const LIMIT: Duration = Duration::from_secs(420);
/// How many measurements are made at once. They mostly wait.
const AT_ONCE: usize = 12;
const HIGHER_ID: &str = "zzzz";
const LOWER_ID: &str = "0000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Events {
    Live,
    /// Websockets stay open, and no event is sent.
    Deaf,
    Off,
}

#[derive(Debug, Clone, Copy)]
enum Ledger {
    Sawtooth,
    /// The id of the service at the peer, which decides who coordinates, and whether the peer is configured.
    Circuit {
        peer_id: &'static str,
        is_configured: bool,
    },
}

const CIRCUIT: Ledger = Ledger::Circuit { peer_id: HIGHER_ID, is_configured: true };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outage {
    KilledNode,
    KilledPeer,
    FrozenNode,
    FrozenPeer,
    /// The REST API stays.
    KilledValidator,
}

/// What the batch is doing when the outage begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The node has it in its queue.
    Pending,
    /// The circuit votes on it.
    Valid,
    /// The node has it, and has not answered the POST.
    Posting,
    /// Nothing is under way; a batch is handed in shortly before the node is back.
    Idle,
}

use Outage::{FrozenNode, FrozenPeer, KilledNode, KilledPeer, KilledValidator};
use Stage::{Idle, Pending, Posting, Valid};

#[derive(Debug, Clone, Copy)]
struct Scenario {
    name: &'static str,
    ledger: Ledger,
    /// How many batches are committed before.
    committed: usize,
    stage: Stage,
    outage: Outage,
    seconds: u64,
    /// A fault of the node that fails.
    fault: Option<Fault>,
}

const FEW: usize = 3;
/// More than the replay shows.
const MANY: usize = 70;

const fn scenario(name: &'static str, stage: Stage, outage: Outage, seconds: u64) -> Scenario {
    Scenario { name, ledger: CIRCUIT, committed: FEW, stage, outage, seconds, fault: None }
}

fn scabbard_scenarios() -> Vec<Scenario> {
    let single = Ledger::Circuit { peer_id: HIGHER_ID, is_configured: false };
    let follower = Ledger::Circuit { peer_id: LOWER_ID, is_configured: true };
    let queued = scenario("node killed, batch queued", Pending, KilledNode, 2);
    let voted = scenario("node killed, batch Valid", Valid, KilledNode, 2);
    let peer = scenario("peer killed, batch Valid", Valid, KilledPeer, 2);
    vec![
        queued,
        Scenario { name: "node killed, batch queued, 70 transactions", committed: MANY, ..queued },
        Scenario {
            name: "node killed, batch queued, does not coordinate",
            ledger: follower,
            ..queued
        },
        voted,
        Scenario { name: "node killed, batch Valid, 70 transactions", committed: MANY, ..voted },
        Scenario {
            name: "node killed, batch Valid, leftover proposal",
            fault: Some(Fault::LeftoverProposal),
            ..voted
        },
        Scenario { name: "node killed, batch queued, without peers", ledger: single, ..queued },
        Scenario { name: "node killed, batch Valid, without peers", ledger: single, ..voted },
        Scenario {
            name: "node killed, without peers, 70 transactions",
            ledger: single,
            committed: MANY,
            ..queued
        },
        peer,
        Scenario { name: "peer killed for 45 s, batch Valid", seconds: 45, ..peer },
        Scenario { name: "peer killed, roots differ", fault: Some(Fault::WritesAlone), ..peer },
        Scenario { name: "peer killed, coordinates, batch Valid", ledger: follower, ..peer },
        scenario("peer frozen for 8 s, batch Valid", Valid, FrozenPeer, 8),
        scenario("peer frozen for 45 s, batch Valid", Valid, FrozenPeer, 45),
        scenario("node frozen for 8 s, batch Valid", Valid, FrozenNode, 8),
        scenario("node frozen for 45 s, batch Valid", Valid, FrozenNode, 45),
        scenario("node killed, POST not answered", Posting, KilledNode, 2),
        scenario("node frozen for 8 s, POST not answered", Posting, FrozenNode, 8),
        scenario("node killed, nothing under way", Idle, KilledNode, 20),
        scenario("peer killed, nothing under way", Idle, KilledPeer, 20),
    ]
}

fn sawtooth_scenarios() -> Vec<Scenario> {
    let sawtooth = |name, stage, outage, seconds| Scenario {
        ledger: Ledger::Sawtooth,
        ..scenario(name, stage, outage, seconds)
    };
    vec![
        sawtooth("validator killed for 8 s, batch pending", Pending, KilledValidator, 8),
        sawtooth("validator killed for 30 s, batch pending", Pending, KilledValidator, 30),
        sawtooth("validator killed for 8 s, POST not answered", Posting, KilledValidator, 8),
        sawtooth("validator killed for 30 s, POST not answered", Posting, KilledValidator, 30),
        sawtooth("node frozen for 8 s, POST not answered", Posting, FrozenNode, 8),
        sawtooth("validator killed, nothing under way", Idle, KilledValidator, 20),
        sawtooth("node killed for 8 s, batch pending", Pending, KilledNode, 8),
        sawtooth("node killed, nothing under way", Idle, KilledNode, 20),
        sawtooth("node frozen for 8 s, batch pending", Pending, FrozenNode, 8),
        sawtooth("node frozen for 45 s, batch pending", Pending, FrozenNode, 45),
        sawtooth("node frozen, nothing under way", Idle, FrozenNode, 8),
    ]
}

/// The ledger and the server of a measurement.
struct Measurement {
    scenario: Scenario,
    harness: BatchHarness,
    peer: Option<LedgerSim>,
    server: BatchServer,
    store: Store,
    batches: Vec<SignedBatch>,
}

#[derive(Debug, Default)]
struct Seconds {
    health: Option<Duration>,
    explanation: Option<Duration>,
    goes_on: Option<Duration>,
    end: String,
}

impl Measurement {
    fn start(scenario: Scenario, events: Events) -> Self {
        let (harness, peer, peers) = match scenario.ledger {
            Ledger::Sawtooth => (BatchHarness::sawtooth_with(sawtooth), None, None),
            Ledger::Circuit { peer_id, is_configured } => {
                let harness = BatchHarness::scabbard_with(1, scabbard);
                let service: ServiceScopeId = harness.services[0].parse().unwrap();
                let at_peer: ServiceScopeId =
                    format!("{}::{peer_id}", service.circuit()).parse().unwrap();
                let peer = scabbard(LedgerSim::scabbard([at_peer.clone()]));
                let peer = peer.join_circuit_of(&harness.ledger, [(service, at_peer)]);
                let peer = peer.start().unwrap();
                let peers = format!("{}={peer_id}@{}", harness.services[0], peer.url());
                (harness, Some(peer), is_configured.then_some(peers))
            }
        };
        let harness = harness.with_default_settings();
        let mut flags =
            vec![("--ledger-event-sockets", if events == Events::Off { "0" } else { "100" })];
        flags.extend(peers.as_ref().map(|peers| ("--services-peers", peers.as_str())));
        let (server, store) = (harness.serve_with(&flags), harness.store());
        let batches = signed_batches(&harness.services, scenario.committed + 4);
        let measurement = Self { scenario, harness, peer, server, store, batches };
        measurement.commit_some();
        if events == Events::Deaf {
            measurement.nodes().for_each(LedgerSim::stop_sending_events);
        }
        measurement
    }

    fn nodes(&self) -> impl Iterator<Item = &LedgerSim> {
        [&self.harness.ledger].into_iter().chain(&self.peer)
    }

    fn commit_some(&self) {
        for batches in self.batches[..self.scenario.committed].chunks(20) {
            let before = self.committed();
            self.server.submit(batches);
            wait_until("the batches are committed", || self.committed() == before + batches.len());
        }
    }

    fn committed(&self) -> usize {
        count_in_state(&self.store, BatchState::Committed)
    }

    /// The first batch that is not committed before the outage.
    fn first(&self) -> &SignedBatch {
        &self.batches[self.scenario.committed]
    }

    fn submit_rest(&self) {
        self.server.submit(&self.batches[self.scenario.committed..]);
    }

    fn measure(&self) -> Seconds {
        if self.scenario.stage == Posting {
            let longer_than_a_request = Fault::LateAnswer(Duration::from_secs(30));
            self.harness.ledger.inject(longer_than_a_request, When::Next(1));
        }
        if self.scenario.stage != Idle {
            self.submit_rest();
            wait_until("the batch is at the ledger", || self.is_at_stage());
        }
        let failed = Instant::now();
        self.fail();
        let mut seconds = Seconds::default();
        self.look_for(self.scenario.seconds.saturating_sub(3), failed, &mut seconds);
        if self.scenario.stage == Idle {
            self.submit_rest();
        }
        self.look_for(self.scenario.seconds, failed, &mut seconds);
        let before = self.committed();
        self.heal();
        let back = Instant::now();
        while seconds.goes_on.is_none() && back.elapsed() < LIMIT && seconds.end.is_empty() {
            self.look(failed, &mut seconds);
            seconds.goes_on = (self.committed() > before).then(|| back.elapsed());
            seconds.end = self.end(back);
        }
        let attempts = self.harness.ledger.times_received(&self.first().batch_id);
        seconds.end += &format!("sent {attempts} times");
        seconds
    }

    /// Looks until so many seconds after the failure.
    fn look_for(&self, until: u64, failed: Instant, seconds: &mut Seconds) {
        while failed.elapsed() < Duration::from_secs(until) {
            self.look(failed, seconds);
        }
    }

    fn is_at_stage(&self) -> bool {
        let first = self.first();
        let is_pending = || {
            let stored = self.store.find(&first.batch_id).unwrap().remove(0);
            stored.progress.state == BatchState::Pending
        };
        match (self.scenario.stage, self.scenario.ledger) {
            (Posting, _) => self.harness.ledger.times_received(&first.batch_id) == 1,
            (_, Ledger::Sawtooth) => is_pending(),
            (Valid, _) => self.status(first) == "Valid",
            _ => self.status(first) == "Pending",
        }
    }

    /// What the node says about a batch of Scabbard.
    fn status(&self, batch: &SignedBatch) -> String {
        let (circuit, service) = self.harness.services[0].split_once("::").unwrap();
        let path = format!("/scabbard/{circuit}/{service}/batch_statuses?ids={}", batch.batch_id);
        let token = CylinderToken::new(&SigningKey::from_seed(9));
        let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
        let request = request("GET", &path, &[&authorization], &[]);
        let response = send(self.harness.ledger.address(), &request).unwrap();
        response.json()[0]["status"]["statusType"].as_str().unwrap().to_owned()
    }

    fn failing(&self) -> &LedgerSim {
        match self.scenario.outage {
            KilledPeer | FrozenPeer => self.peer.as_ref().unwrap(),
            KilledNode | FrozenNode | KilledValidator => &self.harness.ledger,
        }
    }

    fn fail(&self) {
        if let Some(fault) = self.scenario.fault {
            self.nodes().for_each(|node| node.inject(fault, When::Always));
        }
        let node = self.failing();
        match self.scenario.outage {
            KilledNode | KilledPeer => node.kill(),
            FrozenNode | FrozenPeer => node.freeze(),
            KilledValidator => node.crash_validator(REST_TIMEOUT),
        }
    }

    fn heal(&self) {
        let node = self.failing();
        match self.scenario.outage {
            KilledNode | KilledPeer => node.start_again(),
            FrozenNode | FrozenPeer => node.thaw(),
            KilledValidator => node.start_validator(),
        }
    }

    /// Records since when the outage is shown.
    fn look(&self, failed: Instant, seconds: &mut Seconds) {
        thread::sleep(Duration::from_millis(100));
        let shown = |text: String| {
            let is_shown =
                text.contains("has not answered") || text.contains("roots of the nodes differ");
            is_shown.then(|| failed.elapsed())
        };
        if seconds.health.is_none() {
            seconds.health = shown(self.server.get("/health")["parts"].to_string());
        }
        if seconds.explanation.is_none() {
            let service = self.harness.services[0].replace(':', "%3A");
            let explanation = self.server.get(&format!("/v1/services/{service}/explain"));
            seconds.explanation = shown(explanation["text"].to_string());
        }
    }

    /// Why the service does not go on without a person, and since when.
    fn end(&self, back: Instant) -> String {
        let service = self.harness.services[0].parse().unwrap();
        let is_paused = !self.store.pauses(&[service]).unwrap().is_empty();
        let is_held = !self.store.held_batches(None, 1).unwrap().is_empty();
        match (is_paused, is_held) {
            (true, _) => format!("paused after {:.1}; ", back.elapsed().as_secs_f64()),
            (_, true) => format!("held after {:.1}; ", back.elapsed().as_secs_f64()),
            _ => String::new(),
        }
    }
}

fn scabbard(builder: LedgerSimBuilder) -> LedgerSimBuilder {
    builder.pending_for(SCABBARD_STEP).valid_for(SCABBARD_STEP)
}

fn sawtooth(builder: LedgerSimBuilder) -> LedgerSimBuilder {
    builder.pending_for(BLOCK_INTERVAL).block_interval(BLOCK_INTERVAL)
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for seconds in [self.health, self.explanation, self.goes_on] {
            match seconds {
                Some(seconds) => write!(f, "{:.1} | ", seconds.as_secs_f64())?,
                None => write!(f, "- | ")?,
            }
        }
        write!(f, "{}", self.end)
    }
}

/// Prints a row for each scenario, with seconds until the health and the explanation show the outage, and from the
/// return of the node until the next commit.
fn measure(scenarios: &[Scenario]) {
    let runs = scenarios.iter().flat_map(|scenario| {
        [Events::Live, Events::Deaf, Events::Off].map(|events| (*scenario, events))
    });
    let runs = Mutex::new(runs.collect::<Vec<_>>().into_iter());
    println!("| outage | events | health | explanation | goes on | |");
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((scenario, events)) = runs.lock().unwrap().next() else { return };
                    let measurement = Measurement::start(scenario, events);
                    let seconds = measurement.measure();
                    println!("| {} | {events:?} | {seconds} |", scenario.name);
                    measurement.server.stop_with("KILL");
                }
            });
        }
    });
}

#[test]
#[ignore = "takes minutes"]
fn of_scabbard() {
    measure(&scabbard_scenarios());
}

#[test]
#[ignore = "takes minutes"]
fn of_sawtooth() {
    measure(&sawtooth_scenarios());
}
