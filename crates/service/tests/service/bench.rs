use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use grid_batch_core::{BatchState, ServiceScopeId};
use grid_batch_ledger_sim::{LedgerSim, LedgerSimBuilder};
use grid_batch_store::{Filter, Store, StoreOptions};
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

/// A service that is set to a ledger a hundred times as fast as a genuine one.
const FAST: &str = r#"
listen = "127.0.0.1:0"
[ledger]
connect_limit = "1s"
request_limit = "5s"
socket_silence = "6s"
reconnect_first = "10ms"
reconnect_longest = "200ms"
absent_after = "7s"
dropped_after = "8s"
[queue]
poll_interval = "200ms"
delay = "150ms"
[submit]
sending_limit = "6s"
total_limit = "7s"
drain_limit = "7s"
retry_first = "10ms"
retry_longest = "100ms"
[poll]
interval = "50ms"
interval_with_events = "500ms"
longest = "1s"
believe_absence_after = "8s"
quiet_after = "1s"
"#;

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
        fs::write(dir.path().join("key"), "07".repeat(32)).unwrap();
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

    /// The arguments of a program that serves, these last.
    pub fn arguments(&self, more: &[&str]) -> Vec<String> {
        let kind = if self.services == ["global"] { "sawtooth" } else { "scabbard" };
        let file = |name| self.path().join(name).display().to_string();
        let mut arguments = vec!["serve".to_owned()];
        for (flag, value) in [
            ("--config", file("fast.toml")),
            ("--database", self.database.clone()),
            ("--ledger-kind", kind.to_owned()),
            ("--ledger-urls", self.ledger.url()),
            ("--ledger-key-file", file("key")),
        ] {
            arguments.extend([flag.to_owned(), value]);
        }
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    pub fn serve(&self) -> Serving {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, more: &[&str]) -> Serving {
        Serving::start(grid_batch(self.arguments(more)))
    }

    /// What is stored, as another program sees it.
    pub fn store(&self) -> Store {
        Store::open(&self.database.parse().unwrap(), StoreOptions::default()).unwrap()
    }

    pub fn until_all_committed(&self, batches: &[Made]) {
        let store = self.store();
        until("all batches are committed", || {
            count(&store, BatchState::Committed) == batches.len()
        });
        let audit = self.ledger.audit(&promised(batches));
        assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    }
}

/// How many batches are in this state.
pub fn count(store: &Store, state: BatchState) -> usize {
    let count = store.count(&Filter { state: Some(state), ..Filter::default() }).unwrap();
    usize::try_from(count).unwrap()
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

    /// Hands batches in, each in a list of its own, until each is taken.
    pub fn hand_in(&self, batches: &[Made]) {
        for made in batches {
            self.hand_in_list(std::slice::from_ref(made));
        }
    }

    /// Hands batches of one service in, in one list, until they are taken.
    pub fn hand_in_list(&self, batches: &[Made]) {
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
