use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use grid_batch_core::ServiceScopeId;
use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_core::queries::BatchFilter;
use grid_batch_ledger_sim::{ExecutionResult, LedgerSim, LedgerSimBuilder};
use grid_batch_store::{Store, StoreOptions};
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list},
    http::{Response, request, send},
    instance::{LISTENING_PREFIX, LISTENING_SUFFIX},
    process::{ProcessOutput, TestProcess, run},
    wait::{wait_for, wait_until},
};
use serde_json::Value;
use tempfile::TempDir;

use crate::GRID_BATCH;

/// What servers of a test need, and what stays when they end: a simulated ledger, a database, and a
/// configuration file.
pub struct BatchHarness {
    pub ledger: LedgerSim,
    pub services: Vec<String>,
    database: String,
    directory: TempDir,
}

/// A running server that takes batches.
pub struct BatchServer {
    pub process: TestProcess,
    pub address: SocketAddr,
}

/// Settings for a ledger that is much faster than a real one.
const FAST_CONFIG: &str = r#"
listen = "127.0.0.1:0"
[access]
mode = "none"
[ledger]
name = "test"
request_timeout = "1s"
coordinator_timeout = "800ms"
late_arrival_limit = "2s"
[claims]
full_expiry = "3m"
[poll]
interval = "50ms"
requests_per_second = 1000
hold_after = "2s"
[testing]
connect_timeout = "500ms"
silence_timeout = "1500ms"
reconnect_first = "10ms"
reconnect_longest = "200ms"
queue_poll_interval = "200ms"
first_delay = "20ms"
longest_delay = "150ms"
sending_limit = "1200ms"
total_limit = "2s"
drain_limit = "2s"
longest_interval = "1s"
quiet_after = "1s"
accept_absence_after = "1500ms"
warn_after = "2m"
"#;

/// What has no default, and a server that takes requests of everyone.
const DEFAULT_CONFIG: &str = r#"
listen = "127.0.0.1:0"
[access]
mode = "none"
[ledger]
name = "test"
"#;

/// The setting `ledger.coordinator_timeout` of the harness.
pub const COORDINATOR_TIMEOUT: Duration = Duration::from_millis(800);

/// Flags for a server that waits much longer for the ledger's answers.
pub const LONG_LEDGER_TIMEOUTS: &[(&str, &str)] = &[
    ("--ledger-request-timeout", "20s"),
    ("--testing-sending-limit", "21s"),
    ("--testing-total-limit", "22s"),
    ("--testing-drain-limit", "22s"),
    ("--testing-accept-absence-after", "22s"),
];

impl BatchHarness {
    /// A Scabbard ledger with this many services.
    pub fn scabbard(services: usize) -> Self {
        Self::scabbard_with(services, |ledger| ledger)
    }

    pub fn scabbard_with(
        services: usize,
        configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
    ) -> Self {
        let services: Vec<String> = (0..services).map(|n| format!("test-00000::s{n:04}")).collect();
        let scopes = services.iter().map(|service| service.parse::<ServiceScopeId>().unwrap());
        Self::new(services.clone(), configure(at_test_speed(LedgerSim::scabbard(scopes))))
    }

    pub fn sawtooth() -> Self {
        Self::sawtooth_with(|ledger| ledger)
    }

    pub fn sawtooth_with(configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> Self {
        Self::new(vec!["global".to_owned()], configure(at_test_speed(LedgerSim::sawtooth())))
    }

    fn new(services: Vec<String>, ledger: LedgerSimBuilder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ledger = ledger.start().unwrap();
        fs::write(directory.path().join("fast.toml"), FAST_CONFIG).unwrap();
        let key = directory.path().join("key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
        let database = format!("sqlite://{}", directory.path().join("batches.db").display());
        Self { ledger, services, database, directory }
    }

    /// The same, with default settings instead of those for a fast ledger.
    pub fn with_default_settings(self) -> Self {
        fs::write(self.path().join("fast.toml"), DEFAULT_CONFIG).unwrap();
        self
    }

    /// The same, with the database of this URL.
    #[must_use]
    pub fn with_database(self, url: &str) -> Self {
        Self { database: url.to_owned(), ..self }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn database_file(&self) -> PathBuf {
        self.path().join("batches.db")
    }

    /// The command `serve` with these flags. They override the harness's settings.
    pub fn command(&self, flags: &[(&str, &str)]) -> Command {
        let mut command = GRID_BATCH.command(["serve"]);
        command.envs(self.variables()).args(flags.iter().flat_map(|(flag, value)| [flag, value]));
        command
    }

    /// Runs another command with the same settings.
    pub fn run_command(&self, arguments: &[&str]) -> ProcessOutput {
        self.run_command_with(arguments, &[])
    }

    /// The same, with more variables.
    pub fn run_command_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> ProcessOutput {
        let mut command = GRID_BATCH.command(arguments);
        command.envs(self.variables()).envs(variables.iter().copied());
        run(command)
    }

    fn variables(&self) -> [(&str, String); 5] {
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

    pub fn serve(&self) -> BatchServer {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[(&str, &str)]) -> BatchServer {
        BatchServer::start(self.command(flags))
    }

    /// The servers' store, opened by the test.
    pub fn store(&self) -> Store {
        self.store_with(StoreOptions::default())
    }

    pub fn store_with(&self, options: StoreOptions) -> Store {
        Store::open(&self.database.parse().unwrap(), options).unwrap()
    }

    /// Waits until exactly these batches are committed, and audits the ledger's record.
    pub fn wait_until_all_committed(&self, batches: &[SignedBatch]) {
        let store = self.store();
        wait_until("all batches are committed", || {
            self.decide_held_batches(&store);
            count_in_state(&store, BatchState::Committed) == batches.len()
        });
        let audit = self.ledger.audit(&batch_ids(batches));
        assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    }

    /// Sends a batch to the ledger as another client does, and waits until it is executed.
    pub fn execute_for_another_client(&self, batch: &SignedBatch) {
        let executions = self.ledger.record().len();
        assert_eq!(post_to_ledger(&self.ledger, batch).unwrap().status, 202);
        wait_until("the other client's batch is executed", || {
            self.ledger.record().len() > executions
        });
    }

    /// Decides about held batches as an operator does who reads the ledger's record.
    pub fn decide_held_batches(&self, store: &Store) {
        for held in store.held_batches(None, 100).unwrap() {
            let record = self.ledger.record();
            // What was applied is not executed again, so the last result counts.
            let last = record.iter().rev().find(|entry| entry.batch_id == held.batch_id);
            let decision = match last.map(|entry| entry.result) {
                Some(ExecutionResult::Applied) => Decision::Committed,
                Some(ExecutionResult::Invalid) => Decision::Invalid,
                // The server knows that the ledger does not have it. An operator has ended what follows a halt.
                None if held.progress.state.awaits_queuer() => Decision::Invalid,
                None => Decision::Absent,
            };
            let attempt = held.progress.attempts;
            store.decide(&held.service_id, &held.batch_id, attempt, decision).unwrap();
        }
    }
}

/// Posts a batch to a Sawtooth ledger, past the server.
pub fn post_to_ledger(ledger: &LedgerSim, batch: &SignedBatch) -> io::Result<Response> {
    let headers = ["content-type: application/octet-stream"];
    let body = encode_batch_list(std::slice::from_ref(batch));
    send(ledger.address(), &request("POST", "/batches", &headers, &body))
}

fn at_test_speed(ledger: LedgerSimBuilder) -> LedgerSimBuilder {
    let step = Duration::from_millis(5);
    ledger.pending_for(step).valid_for(step)
}

/// How many batches are in this state.
pub fn count_in_state(store: &Store, state: BatchState) -> usize {
    count(store, &BatchFilter { state: Some(state), ..BatchFilter::default() })
}

/// How many batches are stored, in any state. One statement counts them, because batches change
/// their state meanwhile.
pub fn count_all(store: &Store) -> usize {
    count(store, &BatchFilter::default())
}

fn count(store: &Store, filter: &BatchFilter) -> usize {
    usize::try_from(store.count(filter).unwrap()).unwrap()
}

fn post_list(address: SocketAddr, batches: &[SignedBatch]) -> io::Result<Response> {
    let path = format!("/batches?service_id={}", batches[0].service_id);
    let headers = ["content-type: application/octet-stream"];
    send(address, &request("POST", &path, &headers, &encode_batch_list(batches)))
}

/// Posts one list until it is accepted, also while no server listens.
pub fn submit_list(address: SocketAddr, batches: &[SignedBatch]) {
    let rejection = wait_for("the batches are accepted", || match post_list(address, batches) {
        Ok(response) if response.status == 202 => Some(None),
        Ok(response) if matches!(response.status, 429 | 503) => None,
        Ok(response) => Some(Some(response)),
        Err(_) => None,
    });
    assert!(rejection.is_none(), "{rejection:?}");
}

/// An address at which nothing listens now.
pub fn unused_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

impl BatchServer {
    /// Starts a server and waits until it listens.
    pub fn start(command: Command) -> Self {
        let mut process = TestProcess::spawn(command);
        let url = process.wait_for_stdout(LISTENING_PREFIX);
        let address = url.strip_suffix(LISTENING_SUFFIX).unwrap().parse().unwrap();
        Self { process, address }
    }

    /// Reads what the server has at a path.
    pub fn get(&self, path: &str) -> Value {
        let response = send(self.address, &request("GET", path, &[], b"")).unwrap();
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }

    /// Waits until the health says that a node has not answered for this long.
    pub fn wait_for_outage(&self, shortest: Duration) {
        wait_until("the node has not answered for long enough", || {
            let reason = self.get("/health")["parts"]["ledger"]["reason"].to_string();
            let lasted = reason.split_once("has not answered for ").map(|(_, lasted)| lasted);
            let seconds = lasted.and_then(|lasted| lasted.split(' ').next()?.parse().ok());
            seconds.is_some_and(|seconds| Duration::from_secs(seconds) >= shortest)
        });
    }

    /// Asks for something, with a JSON object.
    pub fn post_json(&self, path: &str, body: &Value) -> Response {
        let headers = ["content-type: application/json"];
        let body = body.to_string();
        send(self.address, &request("POST", path, &headers, body.as_bytes())).unwrap()
    }

    /// The status of the response to a request with a token.
    pub fn status_with_token(&self, path: &str, token: &str) -> u16 {
        let authorization = format!("authorization: Bearer {token}");
        send(self.address, &request("GET", path, &[&authorization], b"")).unwrap().status
    }

    /// Posts one list with batches of one service.
    pub fn post(&self, batches: &[SignedBatch]) -> io::Result<Response> {
        post_list(self.address, batches)
    }

    /// Posts batches, one list for each service, and repeats each request until it is accepted.
    pub fn submit(&self, batches: &[SignedBatch]) {
        let mut lists: BTreeMap<_, Vec<SignedBatch>> = BTreeMap::new();
        for batch in batches {
            lists.entry(&batch.service_id).or_default().push(batch.clone());
        }
        lists.values().for_each(|list| submit_list(self.address, list));
    }

    /// Sends a signal that stops the server, `TERM` or `INT`, and waits until it has ended.
    pub fn stop_with(self, signal: &str) -> ProcessOutput {
        self.process.signal(signal);
        self.process.wait()
    }

    #[track_caller]
    pub fn stop(self) {
        let output = self.stop_with("TERM");
        assert_eq!(output.exit_code, Some(0), "{output:?}");
    }
}
