use std::{collections::BTreeMap, fs, net::SocketAddr, path::Path, process::Command};

use grid_batch_test_chain::{Account, Anvil, AnvilOptions, FaultProxy, Poll, Pool};
use grid_batch_test_postgres::TestDatabase;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::{Answer, ask, request},
    program::{Program, grid_batch},
    until::until_some,
};

/// A service that is set to a chain much faster than a genuine one.
const FAST: &str = r#"
listen = "127.0.0.1:0"
log = "debug"
[ledger]
kind = "evm"
connect_limit = "1s"
request_limit = "2s"
[evm]
chain_id = 31337
maximum_gas_price = "200"
gate_interval = "200ms"
confirmations = 1
resend_after = "500ms"
[claims]
expiry_1 = "2s"
expiry_2 = "16s"
[queue]
poll_interval = "200ms"
delay = "150ms"
[submit]
sending_limit = "4s"
total_limit = "6s"
drain_limit = "4s"
retry_first = "10ms"
retry_longest = "100ms"
[poll]
interval = "30ms"
longest = "500ms"
quiet_after = "300ms"
believe_absence_after = "5s"
hold_after = "2s"
"#;

/// What stays while the program comes and goes: a chain with a pool for each gas admin, and a
/// database.
pub struct World {
    pub anvil: Anvil,
    pub proxy: FaultProxy,
    pub pools: Vec<Pool>,
    dir: TempDir,
    database: String,
    _postgres: Option<TestDatabase>,
}

/// The program, serving.
pub struct Serving {
    pub program: Program,
    address: SocketAddr,
}

impl World {
    /// So many pools, each with a gas admin of its own, stored in a file.
    pub fn new(pools: usize) -> Self {
        Self::over(pools, None)
    }

    /// The same, stored in PostgreSQL.
    pub fn on_postgres(pools: usize) -> Self {
        Self::over(pools, Some(TestDatabase::create()))
    }

    fn over(pools: usize, postgres: Option<TestDatabase>) -> Self {
        let anvil = Anvil::start(&AnvilOptions::default()).unwrap();
        let deploy = |owner: &Account| Pool::deploy(&anvil, owner).unwrap();
        let pools: Vec<Pool> = anvil.accounts()[..pools].iter().map(deploy).collect();
        // A reorganisation must not take the pools along.
        anvil.mine(3).unwrap();
        let proxy = FaultProxy::start(anvil.url()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}", dir.path().join("withdrawals.db").display());
        let database = postgres.as_ref().map_or(file, |database| database.url().to_owned());
        let world = Self { anvil, proxy, pools, dir, database, _postgres: postgres };
        fs::write(world.config_file(), FAST).unwrap();
        world
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    fn config_file(&self) -> std::path::PathBuf {
        self.path().join("grid-batch.toml")
    }

    /// The program with this file and these flags; addresses and keys are in its environment.
    pub fn command(&self, more: &[(&str, &str)]) -> Command {
        let mut command = self.program(&["serve"]);
        for (name, text) in more {
            command.args([name, text]);
        }
        command
    }

    /// The program with these arguments, and the same file and environment.
    pub fn program(&self, arguments: &[&str]) -> Command {
        let mut command = grid_batch(arguments);
        let named = |name: &str, index: usize| format!("{name}{index}");
        let admins = (0..self.pools.len())
            .map(|index| format!("{}=env:{}", named("admin", index), named("KEY", index)));
        let pools = self.pools.iter().enumerate();
        let pools = pools.map(|(index, pool)| format!("{}=admin{index}", pool.address()));
        command
            .arg("--config")
            .arg(self.config_file())
            .env("GRID_BATCH_DATABASE", &self.database)
            .env("GRID_BATCH_LEDGER_URLS", self.proxy.url())
            .env("GRID_BATCH_EVM_GAS_ADMINS", admins.collect::<Vec<_>>().join(","))
            .env("GRID_BATCH_EVM_POOLS", pools.collect::<Vec<_>>().join(","));
        for (index, account) in self.anvil.accounts()[..self.pools.len()].iter().enumerate() {
            command.env(named("KEY", index), &account.secret_key);
        }
        command
    }

    pub fn serve(&self) -> Serving {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, more: &[(&str, &str)]) -> Serving {
        Serving::start(self.command(more))
    }

    /// Everything that the pool of this index has accepted.
    pub fn polls(&self, pool: usize) -> Vec<Poll> {
        self.pools[pool].polls(&self.anvil).unwrap()
    }

    /// The amounts that a pool has accepted, in order.
    pub fn paid(&self, pool: usize) -> Vec<u64> {
        self.polls(pool).iter().map(|poll| poll.amount.parse().unwrap()).collect()
    }

    /// How many transactions the gas admin of this index has had mined.
    pub fn nonce(&self, admin: usize) -> u64 {
        let address = &self.anvil.accounts()[admin].address;
        let count = self.anvil.rpc("eth_getTransactionCount", json!([address, "latest"])).unwrap();
        u64::from_str_radix(count.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }

    pub fn order(&self, pool: usize, amount: u64) -> Value {
        json!({
            "pool": self.pools[pool].address(),
            "beneficiary": format!("0x{:040x}", 0xbeef_0000_u64 + amount),
            "amount": amount.to_string(),
        })
    }
}

impl Serving {
    pub fn start(command: Command) -> Self {
        let mut program = Program::start(command);
        let url = program.until_it_prints("Withdrawals are taken at http://");
        let address = url.trim_end_matches("/withdrawals").parse().unwrap();
        Self { program, address }
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(self.address, &request("GET", path, &[], &[])).unwrap()
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        let headers = ["content-type: application/json"];
        ask(self.address, &request("POST", path, &headers, body.as_bytes())).unwrap()
    }

    /// Schedules a withdrawal, and gives its id.
    #[track_caller]
    pub fn schedule(&self, order: &Value) -> String {
        let answer = self.post("/withdrawals", order);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    pub fn withdrawal(&self, id: &str) -> Value {
        self.get(&format!("/withdrawals/{id}")).json()
    }

    /// The withdrawal, once it is in this state.
    pub fn until(&self, id: &str, state: &str) -> Value {
        let mut last = Value::Null;
        until_some(&format!("{id} is {state}"), || {
            let now = self.withdrawal(id);
            if now != last && std::env::var_os("GRID_BATCH_TEST_TELL").is_some() {
                eprintln!("{now}");
            }
            last = now.clone();
            (now["state"] == state).then_some(now)
        })
    }

    /// The withdrawals, once all have been made: each with an id of the pool, and no reason to fail.
    pub fn until_withdrawn(&self, ids: &[String]) -> Vec<Value> {
        let withdrawn: Vec<Value> = ids.iter().map(|id| self.until(id, "withdrawn")).collect();
        for told in &withdrawn {
            assert!(told["withdrawal_id"].is_string() && told["fail_reason"].is_null(), "{told}");
        }
        withdrawn
    }
}

/// How many of the values there are of each.
pub fn tally<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut tally = BTreeMap::new();
    for value in values {
        *tally.entry(value).or_default() += 1;
    }
    tally
}
