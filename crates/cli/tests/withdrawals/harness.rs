use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use grid_batch_test_chain::{Account, AnvilOptions, Chain, FaultProxy, Node, Poll, Pool};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    http::{Response, request, send},
    process::TestProcess,
    wait::wait_for,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::GRID_BATCH;

/// The settings that [`FAST_CONFIG`] makes shorter, at their usual values.
pub const USUAL_PACE: &[(&str, &str)] = &[
    ("--log", "info"),
    ("--poll-interval", "1s"),
    ("--testing-longest-interval", "60s"),
    ("--testing-queue-poll-interval", "1s"),
    ("--evm-resend-after", "30s"),
    ("--testing-quiet-after", "60s"),
];

/// Settings for a chain that is much faster than a real one.
const FAST_CONFIG: &str = r#"
listen = "127.0.0.1:0"
log = "debug"
[ledger]
kind = "evm"
request_timeout = "2s"
[evm]
chain_id = 31337
maximum_gas_price = "200"
gate_interval = "200ms"
confirmations = 1
resend_after = "500ms"
[claims]
idle_expiry = "2s"
full_expiry = "16s"
[poll]
interval = "30ms"
hold_after = "2s"
[testing]
connect_timeout = "1s"
signer_timeout = "5s"
balance_interval = "30s"
queue_poll_interval = "200ms"
first_delay = "20ms"
longest_delay = "150ms"
sending_limit = "4s"
total_limit = "6s"
drain_limit = "4s"
longest_interval = "500ms"
quiet_after = "300ms"
accept_absence_after = "5s"
warn_after = "2m"
"#;

/// What servers of a test need, and what stays when they end: a chain with a pool for each gas admin,
/// a database, and a configuration file.
pub struct WithdrawalHarness {
    pub anvil: Chain,
    pub proxy: FaultProxy,
    pub pools: Vec<Pool>,
    admins: usize,
    directory: TempDir,
    database: String,
    _postgres: Option<TestDatabase>,
}

/// A copy of a SQLite database.
pub struct DatabaseCopy(TempDir);

/// The files of the database in a directory.
fn database_files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.to_string_lossy().contains("withdrawals.db")).collect()
}

fn copy_files(from: &Path, to: &Path) {
    for file in database_files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

/// What a server that takes withdrawals prints once it listens: this, and its address.
const LISTENING_PREFIX: &str = "Accepting withdrawals at http://";
/// What follows the address.
const LISTENING_SUFFIX: &str = "/withdrawals";

/// A running server that takes withdrawals.
pub struct WithdrawalServer {
    pub process: TestProcess,
    pub address: SocketAddr,
}

impl WithdrawalHarness {
    /// This many pools, each with a gas admin of its own, and a SQLite database.
    pub fn new(pools: usize) -> Self {
        Self::with(pools, anvil(), None)
    }

    /// The same with a PostgreSQL database.
    pub fn on_postgres(pools: usize) -> Self {
        Self::with(pools, anvil(), Some(TestDatabase::create()))
    }

    /// The same on a chain with these options.
    pub fn on_postgres_with(pools: usize, options: &AnvilOptions) -> Self {
        Self::with(pools, Chain::start(options).unwrap(), Some(TestDatabase::create()))
    }

    /// One pool on a chain whose node is hardhat, and a SQLite database.
    pub fn on_hardhat() -> Self {
        Self::with(1, Chain::start_hardhat().unwrap(), None)
    }

    /// One gas admin without a pool on a chain of this node, and a SQLite database.
    pub fn on_node(node: Node, options: &AnvilOptions) -> Self {
        let harness = Self::with(0, Chain::start_node(node, options).unwrap(), None);
        Self { admins: 1, ..harness }
    }

    fn with(pools: usize, anvil: Chain, postgres: Option<TestDatabase>) -> Self {
        let deploy = |owner: &Account| Pool::deploy(&anvil, owner).unwrap();
        let admins = pools;
        let pools: Vec<Pool> = anvil.accounts()[..pools].iter().map(deploy).collect();
        // A reorganization must not remove the pools.
        anvil.mine(3).unwrap();
        let proxy = FaultProxy::start(anvil.url()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}", directory.path().join("withdrawals.db").display());
        let database = postgres.as_ref().map_or(file, |database| database.url().to_owned());
        let harness =
            Self { anvil, proxy, pools, admins, directory, database, _postgres: postgres };
        fs::write(harness.config_file(), FAST_CONFIG).unwrap();
        harness
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn config_file(&self) -> PathBuf {
        self.path().join("grid-batch.toml")
    }

    /// The command `serve` with these flags. They override the harness's settings.
    pub fn command(&self, flags: &[(&str, &str)]) -> Command {
        let mut command = self.command_with(&["serve"]);
        for (flag, value) in flags {
            command.args([flag, value]);
        }
        command
    }

    /// A command with these arguments, the configuration file, and addresses and keys in its
    /// environment.
    pub fn command_with(&self, arguments: &[&str]) -> Command {
        let mut command = GRID_BATCH.command(arguments);
        let numbered = |name: &str, index: usize| format!("{name}{index}");
        let admins = (0..self.admins)
            .map(|index| format!("{}=env:{}", numbered("admin", index), numbered("KEY", index)));
        let pools = self.pools.iter().enumerate();
        let pools = pools.map(|(index, pool)| format!("{}=admin{index}", pool.address()));
        command
            .arg("--config")
            .arg(self.config_file())
            .env("GRID_BATCH_DATABASE", &self.database)
            .env("GRID_BATCH_LEDGER_URLS", self.proxy.url())
            .env("GRID_BATCH_GAS_ADMINS_KEY", admins.collect::<Vec<_>>().join(","))
            .env("GRID_BATCH_POOLS_GAS_ADMIN", pools.collect::<Vec<_>>().join(","));
        for (index, account) in self.anvil.accounts()[..self.admins].iter().enumerate() {
            command.env(numbered("KEY", index), &account.secret_key);
        }
        command
    }

    /// A command with these arguments that knows the database and no configuration.
    pub fn database_only(&self, arguments: &[&str]) -> Command {
        let mut command = GRID_BATCH.command(arguments);
        command.current_dir(self.path().join("..")).args(["--database", &self.database]);
        command
    }

    pub fn serve(&self) -> WithdrawalServer {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[(&str, &str)]) -> WithdrawalServer {
        WithdrawalServer::start(self.command(flags))
    }

    /// Starts a server whose gas admins may send every transaction.
    pub fn serve_calls(&self, flags: &[(&str, &str)]) -> WithdrawalServer {
        let admins = 0..self.admins;
        let anything: Vec<String> = admins.map(|index| format!("admin{index}=*")).collect();
        let anything = anything.join(",");
        self.serve_with(&[flags, &[("--gas-admins-may-send", anything.as_str())]].concat())
    }

    /// Copies the SQLite database. No server may be running.
    pub fn copy_database(&self) -> DatabaseCopy {
        let copy = tempfile::tempdir().unwrap();
        copy_files(self.path(), copy.path());
        DatabaseCopy(copy)
    }

    /// Puts a copy of the SQLite database back, as a restored backup. No server may be running.
    pub fn restore_database(&self, copy: &DatabaseCopy) {
        for file in database_files(self.path()) {
            fs::remove_file(file).unwrap();
        }
        copy_files(copy.0.path(), self.path());
    }

    /// The payments of a pool.
    pub fn polls(&self, pool: usize) -> Vec<Poll> {
        self.pools[pool].polls(&self.anvil).unwrap()
    }

    /// The amounts that a pool has paid, in order.
    pub fn paid(&self, pool: usize) -> Vec<u64> {
        self.polls(pool).iter().map(|poll| poll.amount.parse().unwrap()).collect()
    }

    /// The time of the first block. Another chain that starts with it has the same first block.
    pub fn genesis_time(&self) -> u64 {
        let block = self.anvil.rpc("eth_getBlockByNumber", json!(["0x0", false])).unwrap();
        parse_hex(&block["timestamp"])
    }

    /// How many transactions of a gas admin are mined.
    pub fn nonce(&self, admin: usize) -> u64 {
        let address = &self.anvil.accounts()[admin].address;
        let count = self.anvil.rpc("eth_getTransactionCount", json!([address, "latest"])).unwrap();
        parse_hex(&count)
    }

    /// Makes this account the owner of a pool.
    pub fn set_pool_owner(&self, pool: usize, account: usize) {
        let owner = &self.anvil.accounts()[account].address[2..];
        let owner = json!([self.pools[pool].address(), "0x0", format!("0x{owner:0>64}")]);
        self.anvil.rpc("hardhat_setStorageAt", owner).unwrap();
    }

    pub fn withdrawal_request(&self, pool: usize, amount: u64) -> Value {
        json!({
            "pool": self.pools[pool].address(),
            "beneficiary": format!("0x{:040x}", 0xbeef_0000_u64 + amount),
            "amount": amount.to_string(),
        })
    }
}

impl WithdrawalServer {
    pub fn start(command: Command) -> Self {
        let mut process = TestProcess::spawn(command);
        let url = process.wait_for_stdout(LISTENING_PREFIX);
        let address = url.trim_end_matches(LISTENING_SUFFIX).parse().unwrap();
        Self { process, address }
    }

    pub fn get(&self, path: &str) -> Response {
        send(self.address, &request("GET", path, &[], &[])).unwrap()
    }

    pub fn post(&self, path: &str, body: &Value) -> Response {
        let body = body.to_string();
        let headers = ["content-type: application/json"];
        send(self.address, &request("POST", path, &headers, body.as_bytes())).unwrap()
    }

    /// Schedules a withdrawal and returns its id.
    #[track_caller]
    pub fn schedule(&self, withdrawal: &Value) -> String {
        let response = self.post("/withdrawals", withdrawal);
        assert_eq!(response.status, 201, "{response:?}");
        response.json()["id"].as_str().unwrap().to_owned()
    }

    pub fn withdrawal(&self, id: &str) -> Value {
        self.get(&format!("/withdrawals/{id}")).json()
    }

    /// Waits until the withdrawal is in this state, and returns it. With the environment variable
    /// `GRID_BATCH_TEST_PRINT_WITHDRAWALS`, prints it each time it changes.
    pub fn wait_for_state(&self, id: &str, state: &str) -> Value {
        let mut last = Value::Null;
        wait_for(&format!("{id} is {state}"), || {
            let now = self.withdrawal(id);
            if now != last && std::env::var_os("GRID_BATCH_TEST_PRINT_WITHDRAWALS").is_some() {
                eprintln!("{now}");
            }
            last = now.clone();
            (now["state"] == state).then_some(now)
        })
    }

    /// Waits until the withdrawals are paid, and returns them. Asserts that each has the pool's id and
    /// no reason for a failure.
    pub fn wait_until_withdrawn(&self, ids: &[String]) -> Vec<Value> {
        let withdrawn: Vec<Value> =
            ids.iter().map(|id| self.wait_for_state(id, "withdrawn")).collect();
        for withdrawal in &withdrawn {
            assert!(
                withdrawal["withdrawal_id"].is_string() && withdrawal["fail_reason"].is_null(),
                "{withdrawal}"
            );
        }
        withdrawn
    }
}

fn anvil() -> Chain {
    Chain::start(&AnvilOptions::default()).unwrap()
}

fn parse_hex(number: &Value) -> u64 {
    u64::from_str_radix(number.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// How often each value occurs.
pub fn count_values<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}
