use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use grid_batch_core::{BatchFilter, BatchState, Decision, ServiceScopeId};
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_store::{Store, StoreOptions};
use tempfile::TempDir;

use crate::{
    batches::{Made, list, promised},
    client::{Answer, ask, request},
    program::{Ended, Program, grid_batch},
    until::{until, until_some},
};

/// What stays while the program comes and goes: a ledger, a database and a configuration.
pub struct Bench {
    pub ledger: LedgerSim,
    pub services: Vec<String>,
    database: String,
    dir: TempDir,
}

/// The program, serving.
pub struct Serving {
    pub program: Program,
    pub address: SocketAddr,
}

/// A service that is set to a ledger much faster than a genuine one.
const FAST: &str = r#"
listen = "127.0.0.1:0"
[ledger]
connect_limit = "500ms"
request_limit = "1s"
socket_silence = "1500ms"
reconnect_first = "10ms"
reconnect_longest = "200ms"
absent_after = "2s"
dropped_after = "2s"
[queue]
poll_interval = "200ms"
delay = "150ms"
[submit]
sending_limit = "1200ms"
total_limit = "2s"
drain_limit = "2s"
retry_first = "10ms"
retry_longest = "100ms"
[poll]
interval = "50ms"
interval_with_events = "500ms"
longest = "1s"
quiet_after = "1s"
believe_absence_after = "1500ms"
hold_after = "2s"
"#;

/// The same, but it waits for the ledger's answers for long.
pub const PATIENT: &[(&str, &str)] = &[
    ("--ledger-request-limit", "20s"),
    ("--submit-sending-limit", "21s"),
    ("--submit-total-limit", "22s"),
    ("--submit-drain-limit", "22s"),
    ("--poll-believe-absence-after", "22s"),
];

impl Bench {
    /// A Scabbard ledger with so many services.
    pub fn scabbard(services: usize) -> Self {
        Self::scabbard_with(services, |ledger| ledger)
    }

    pub fn scabbard_with(
        services: usize,
        change: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
    ) -> Self {
        let services: Vec<String> = (0..services).map(|n| format!("test-00000::s{n:04}")).collect();
        let scopes = services.iter().map(|service| service.parse::<ServiceScopeId>().unwrap());
        Self::with(services.clone(), change(LedgerSim::scabbard(scopes)))
    }

    pub fn sawtooth() -> Self {
        Self::with(vec!["global".to_owned()], LedgerSim::sawtooth())
    }

    fn with(services: Vec<String>, ledger: LedgerSimBuilder) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let moment = Duration::from_millis(5);
        let ledger = ledger.pending_for(moment).valid_for(moment).start().unwrap();
        fs::write(dir.path().join("fast.toml"), FAST).unwrap();
        let key = dir.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
        let database = format!("sqlite://{}", dir.path().join("batches.db").display());
        Self { ledger, services, database, dir }
    }

    #[must_use]
    pub fn stored_in(self, database: &str) -> Self {
        Self { database: database.to_owned(), ..self }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn database_file(&self) -> PathBuf {
        self.path().join("batches.db")
    }

    /// The program that serves, not yet started. What these flags say is stronger than what the
    /// bench says.
    pub fn command(&self, flags: &[(&str, &str)]) -> Command {
        let mut command = grid_batch(["serve"]);
        command.envs(self.settings()).args(flags.iter().flat_map(|(flag, value)| [flag, value]));
        command
    }

    fn settings(&self) -> [(&str, String); 5] {
        let kind = if self.services == ["global"] { "sawtooth" } else { "scabbard" };
        let file = |name| self.path().join(name).display().to_string();
        [
            ("GRID_BATCH_CONFIG", file("fast.toml")),
            ("GRID_BATCH_DATABASE", self.database.clone()),
            ("GRID_BATCH_LEDGER_KIND", kind.to_owned()),
            ("GRID_BATCH_LEDGER_URLS", self.ledger.url()),
            ("GRID_BATCH_LEDGER_KEY_FILE", file("key")),
        ]
    }

    pub fn serve(&self) -> Serving {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[(&str, &str)]) -> Serving {
        Serving::start(self.command(flags))
    }

    /// What is stored, as another program sees it.
    pub fn store(&self) -> Store {
        Store::open(&self.database.parse().unwrap(), StoreOptions::default()).unwrap()
    }

    /// Waits until these and no others are committed, and compares with the ledger's record.
    pub fn until_all_committed(&self, batches: &[Made]) {
        let store = self.store();
        until("all batches are committed", || {
            self.decide_what_is_held(&store);
            count(&store, BatchState::Committed) == batches.len()
        });
        let audit = self.ledger.audit(&promised(batches));
        assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    }

    /// As a person does who looks into the ledger.
    pub fn decide_what_is_held(&self, store: &Store) {
        for held in store.held_batches(None, 100).unwrap() {
            let record = self.ledger.record();
            let is_applied = record.iter().any(|entry| entry.batch_id == held.batch_id);
            let decision = if is_applied { Decision::Committed } else { Decision::Absent };
            store.decide(&held.service_id, &held.batch_id, decision).unwrap();
        }
    }
}

/// How many batches are in this state.
pub fn count(store: &Store, state: BatchState) -> usize {
    of_filter(store, &BatchFilter { state: Some(state), ..BatchFilter::default() })
}

/// How many batches there are, wherever they stand: by one look, for they move while one counts.
pub fn stored(store: &Store) -> usize {
    of_filter(store, &BatchFilter::default())
}

fn of_filter(store: &Store, filter: &BatchFilter) -> usize {
    usize::try_from(store.count(filter).unwrap()).unwrap()
}

impl Serving {
    pub fn start(command: Command) -> Self {
        let mut program = Program::start(command);
        let url = program.until_it_prints("Batches are taken at http://");
        let address = url.strip_suffix("/batches").unwrap().parse().unwrap();
        Self { program, address }
    }

    /// Hands batches of one service in, in one list.
    pub fn try_hand_in(&self, batches: &[Made]) -> io::Result<Answer> {
        let path = format!("/batches?service_id={}", batches[0].service_id);
        let headers = ["content-type: application/octet-stream"];
        ask(self.address, &request("POST", &path, &headers, &list(batches)))
    }

    /// Hands batches in, a list for each service, until all are taken.
    pub fn hand_in(&self, batches: &[Made]) {
        let mut lists: BTreeMap<_, Vec<Made>> = BTreeMap::new();
        for made in batches {
            lists.entry(&made.service_id).or_default().push(made.clone());
        }
        lists.values().for_each(|list| self.hand_in_list(list));
    }

    fn hand_in_list(&self, batches: &[Made]) {
        let refusal = until_some("the batches are taken", || match self.try_hand_in(batches) {
            Ok(answer) if answer.status == 202 => Some(None),
            Ok(answer) if matches!(answer.status, 429 | 503) => None,
            Ok(answer) => Some(Some(answer)),
            Err(_) => None,
        });
        assert!(refusal.is_none(), "{refusal:?}");
    }

    /// Tells it to end, by `TERM` or `INT`.
    pub fn stop_by(self, signal: &str) -> Ended {
        self.program.signal(signal);
        self.program.ended()
    }

    #[track_caller]
    pub fn stop(self) {
        let ended = self.stop_by("TERM");
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}
