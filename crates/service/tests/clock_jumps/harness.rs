//! A server in this process, its ledger and its database.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::Duration,
};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder, SentTwice};
use grid_batch_service::{Config, RunningServer, Server};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list, signed_batch},
    clock::JumpingClock,
    http::{request, send},
    wait::{wait_for, wait_until},
};
use serde_json::Value;
use tempfile::TempDir;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerKind {
    Scabbard,
    Sawtooth,
}

#[derive(Debug, Clone, Copy)]
pub enum DatabaseKind {
    Postgres,
    Sqlite,
}

/// What happens to the time of day. All waits of a test are shorter than either jump.
#[derive(Debug, Clone, Copy)]
pub enum Jump {
    Forward,
    Back,
}

impl Jump {
    pub const ALL: [Self; 2] = [Self::Forward, Self::Back];
}

/// A server, its ledger, its database, and the clock of its machine.
pub struct Machine {
    pub ledger: LedgerSim,
    pub clock: Arc<JumpingClock>,
    pub server: RunningServer,
    config: Config,
    batches: Vec<SignedBatch>,
    _directory: TempDir,
    _database: Option<TestDatabase>,
}

/// Settings for a ledger that is much faster than a real one.
const SETTINGS: &[(&str, &str)] = &[
    ("listen", "127.0.0.1:0"),
    ("testing.connect_timeout", "500ms"),
    ("ledger.request_timeout", "1s"),
    ("testing.silence_timeout", "10s"),
    ("testing.reconnect_first", "10ms"),
    ("testing.reconnect_longest", "200ms"),
    ("ledger.coordinator_timeout", "1s"),
    ("ledger.late_arrival_limit", "2s"),
    ("testing.queue_poll_interval", "200ms"),
    ("testing.first_delay", "1s"),
    ("testing.longest_delay", "1s"),
    ("testing.sending_limit", "5s"),
    ("testing.total_limit", "6s"),
    ("testing.drain_limit", "2s"),
    ("poll.interval", "50ms"),
    ("testing.longest_interval", "1s"),
    ("testing.quiet_after", "1s"),
    ("testing.accept_absence_after", "2s"),
    ("poll.hold_after", "1m"),
];

impl Machine {
    /// Starts the server, with these settings over the usual ones. Its ledger gets `count` batches, each of which is
    /// pending for `step` and then valid for as long.
    pub fn start(
        ledger: LedgerKind,
        database: DatabaseKind,
        count: usize,
        step: Duration,
        settings: &[(&str, &str)],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let (service, kind, sim) = ledger_of(ledger);
        let sim = sim.pending_for(step).valid_for(step).sent_twice(SentTwice::StuckValid);
        let sim = sim.start().unwrap();
        let (database, test_database) = match database {
            DatabaseKind::Postgres => {
                let database = TestDatabase::create();
                (database.url().to_owned(), Some(database))
            }
            DatabaseKind::Sqlite => {
                (format!("sqlite://{}", directory.path().join("batches.db").display()), None)
            }
        };
        let (url, key) = (sim.url(), key.display().to_string());
        let own = [
            ("database", database.as_str()),
            ("access.mode", "none"),
            ("ledger.kind", kind),
            ("ledger.name", "test"),
            ("ledger.urls", &url),
            ("ledger.key_file", &key),
        ];
        let config = config(&[SETTINGS, &own, settings].concat());
        let clock = Arc::new(JumpingClock::default());
        let server = Server::start_with_clock(&config, clock.clone()).unwrap();
        let batches = (0..count).map(|number| signed_batch(service, number)).collect();
        Self {
            ledger: sim,
            clock,
            server,
            config,
            batches,
            _directory: directory,
            _database: test_database,
        }
    }

    pub fn jump(&self, jump: Jump) {
        set(&self.clock, jump);
    }

    /// Stops the server, and continues with one on another machine, whose time of day differs like
    /// this.
    #[must_use]
    pub fn continue_on_another(self, difference: Jump) -> Self {
        let clock = Arc::new(JumpingClock::default());
        set(&clock, difference);
        let server = Server::start_with_clock(&self.config, clock.clone()).unwrap();
        self.server.stop().unwrap();
        Self { server, clock, ..self }
    }

    /// What the server says about its health.
    pub fn health(&self) -> Value {
        let address = self.server.url().strip_prefix("http://").unwrap().parse().unwrap();
        send(address, &request("GET", "/health", &[], b"")).unwrap().json()
    }

    /// Sends all batches to the server, again while it asks for that.
    pub fn submit(&self) {
        let path = format!("/batches?service_id={}", self.batches[0].service_id);
        let headers = ["content-type: application/octet-stream"];
        let post = request("POST", &path, &headers, &encode_batch_list(&self.batches));
        let address = self.server.url().strip_prefix("http://").unwrap().parse().unwrap();
        wait_until("stored", || {
            let answer = send(address, &post).unwrap();
            assert!([202, 503].contains(&answer.status), "{}", answer.json());
            answer.status == 202
        });
    }

    /// The first batch, as it is stored.
    pub fn first(&self) -> StoredBatch {
        self.server.store().find(&self.batches[0].batch_id).unwrap().remove(0)
    }

    /// Waits until the first batch is like this.
    #[track_caller]
    pub fn wait_for_first(&self, description: &str, is_so: impl Fn(&StoredBatch) -> bool) {
        wait_until(description, || is_so(&self.first()));
    }

    /// Waits until all batches have ended, and checks that each was applied once and in order.
    pub fn check_all_committed(&self) {
        let last = self.batches.last().unwrap();
        let ended = wait_for("the last batch ended", || {
            let stored = self.server.store().find(&last.batch_id).unwrap().remove(0);
            stored.ended_at.map(|_| stored)
        });
        assert_eq!(ended.progress.state, BatchState::Committed);
        let audit = self.ledger.audit(&batch_ids(&self.batches));
        assert!(audit.is_clean() && audit.applied == self.batches.len(), "{audit}");
    }
}

fn set(clock: &JumpingClock, jump: Jump) {
    match jump {
        Jump::Forward => clock.set_forward(Duration::from_mins(3)),
        Jump::Back => clock.set_back(Duration::from_hours(1)),
    }
}

fn ledger_of(ledger: LedgerKind) -> (&'static str, &'static str, LedgerSimBuilder) {
    match ledger {
        LedgerKind::Scabbard => {
            let service = "test-00000::gsAA";
            let scope: ServiceScopeId = service.parse().unwrap();
            (service, "scabbard", LedgerSim::scabbard([scope]))
        }
        LedgerKind::Sawtooth => ("global", "sawtooth", LedgerSim::sawtooth()),
    }
}

/// The last value of a setting counts.
fn config(settings: &[(&str, &str)]) -> Config {
    let last: BTreeMap<_, _> = settings.iter().copied().collect();
    let flag = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    Config::from_flags(last.into_iter().map(flag).collect()).unwrap()
}
