//! What the program prints about this ledger.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use grid_batch_client::{Client, ClientOptions};
use grid_batch_ledger_tests::ServerProcess;
use sequence_ledger_sim::Simulator;
use tempfile::TempDir;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sequence-batch"));
    command.args(arguments);
    command
}

/// What a command prints, and whether it succeeded.
fn run(arguments: &[&str]) -> (bool, String) {
    let output = command(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// A configuration file with this text.
fn file(directory: &TempDir, text: &str) -> PathBuf {
    let file = directory.path().join("grid-batch.toml");
    fs::write(&file, text).unwrap();
    file
}

fn check(file: &Path) -> (bool, String) {
    run(&["config", "check", "--config", file.to_str().unwrap()])
}

#[test]
fn configuration_is_checked() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("grid-batch.toml");
    assert_eq!(check(&example), (true, "the configuration is valid\n".to_owned()));
    let directory = tempfile::tempdir().unwrap();
    let (_, text) = check(&file(&directory, ""));
    assert!(text.contains("set it to sawtooth, scabbard or sequence"), "{text}");
    let settings = fs::read_to_string(example).unwrap().replace("height_margin", "margin");
    let (ended, text) = run(&[
        "serve",
        "--config",
        file(&directory, &settings).to_str().unwrap(),
        "--database",
        &format!("sqlite://{}", directory.path().join("batches.db").display()),
    ]);
    assert!(!ended && text.contains("line 6 of ") && text.contains("margin"), "{text}");
}

/// A server of a ledger with a block every 50 ms, and a transaction of alice that was submitted to it.
struct Submitted {
    node: Simulator,
    /// The last block that can have the transaction.
    last_height: u64,
    url: String,
    database: String,
    _server: ServerProcess,
    _directory: TempDir,
}

impl Submitted {
    fn new(sequence: u64, height_margin: u64) -> Self {
        let node = Simulator::start("test", Duration::from_millis(50)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", directory.path().join("batches.db").display());
        let urls = node.urls();
        let file = file(
            &directory,
            &format!(
                "database = \"{database}\"\nlisten = \"127.0.0.1:0\"\n[access]\nmode = \"none\"\n\
                 [ledger]\nkind = \"sequence\"\nurls = {urls:?}\n[ledger.sequence]\n\
                 height_margin = {height_margin}\n[poll]\nhold_after = \"200ms\"\n[testing]\n\
                 queue_poll_interval = \"100ms\"\nfirst_delay = \"20ms\"\nlongest_delay = \"100ms\"\n\
                 quiet_after = \"60s\"\n",
            ),
        );
        let mut server =
            ServerProcess::start(command(&["serve", "--config", file.to_str().unwrap()]));
        let url = server.url();
        let options = ClientOptions { url: url.clone(), ..ClientOptions::default() };
        let last_height = node.with_chain(|chain| chain.height()) + 1_000;
        let transaction = format!(
            r#"{{"account":"alice","sequence":{sequence},"last_height":{last_height},"to":"bob","amount":1}}"#
        );
        let client = Client::new(options).unwrap();
        client.submit(transaction.as_bytes(), Some("alice"), None, false).unwrap();
        Self { node, last_height, url, database, _server: server, _directory: directory }
    }

    /// Has the ledger pass the last block that can have the transaction.
    fn pass_deadline(&self) {
        self.node.with_chain(|chain| chain.skip_to(self.last_height + 1));
    }

    /// What `show` prints, in one line.
    fn shown(&self, id: &str) -> String {
        let (_, text) = run(&["show", id, "--url", &self.url]);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn wait_until_shown(&self, id: &str, text: &str) {
        let started = Instant::now();
        while !self.shown(id).contains(text) {
            assert!(started.elapsed() < Duration::from_secs(90), "it is not shown: {text}");
        }
    }
}

#[test]
fn expired_transaction_is_shown_with_its_deadline() {
    // The transaction with the sequence number 1 is missing. Without a deadline, the other one would be held.
    let submitted = Submitted::new(2, 2);
    let last_height = submitted.last_height;
    submitted.wait_until_shown("alice-2-", "number 1 was not used yet");
    submitted.pass_deadline();
    submitted.wait_until_shown("alice-2-", "state invalid");
    let reason = format!("expired: the ledger has passed its deadline, height {last_height}");
    submitted.wait_until_shown("alice-2-", &reason);
    let (_, text) = run(&["show", "alice", "alice-2-", "--database", &submitted.database]);
    assert!(text.contains(&format!("deadline   height {last_height}\n")), "{text}");
    let (explained, text) = run(&["explain", "alice-2-", "--url", &submitted.url]);
    assert!(explained && text.contains("invalid"), "{text}");
}

#[test]
fn transaction_is_not_sent_shortly_before_its_height() {
    let submitted = Submitted::new(1, 10_000);
    submitted.wait_until_shown("alice-1-", "too little is left until the deadline of the batch");
    submitted.pass_deadline();
    submitted.wait_until_shown("alice-1-", "state invalid");
    assert_eq!(submitted.node.arrivals(), 0);
}
