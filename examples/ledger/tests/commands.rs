//! What the program prints about this ledger.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use grid_batch_client::{Client, ClientOptions};
use grid_batch_test_support::{process::TestProcess, wait::wait_until};
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

#[test]
fn expired_transaction_is_shown_with_its_deadline() {
    let node = Simulator::start("test", Duration::from_millis(50)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", directory.path().join("batches.db").display());
    let file = file(
        &directory,
        &format!(
            "database = \"{database}\"\nlisten = \"127.0.0.1:0\"\n[access]\nmode = \"none\"\n[ledger]\n\
             kind = \"sequence\"\nurls = {:?}\n[queue]\npoll_interval = \"100ms\"\ndelay = \"20ms\"\n\
             longest_delay = \"100ms\"\n[poll]\nhold_after = \"200ms\"\n",
            node.urls()
        ),
    );
    let mut server = TestProcess::spawn(command(&["serve", "--config", file.to_str().unwrap()]));
    let address = server.wait_for_stdout("http://");
    let url = format!("http://{}", address.split('/').next().unwrap());
    let client =
        Client::new(ClientOptions { url: url.clone(), ..ClientOptions::default() }).unwrap();
    let last_height = node.with_chain(|chain| chain.height()) + 40;
    // The one with the sequence number 1 is missing. Without its deadline, it would be held before.
    let transaction = format!(
        r#"{{"account":"alice","sequence":2,"last_height":{last_height},"to":"bob","amount":1}}"#
    );
    client.submit(transaction.as_bytes(), Some("alice"), None, false).unwrap();
    let shown = || run(&["show", "alice-2-", "--url", &url]).1;
    wait_until("the node has refused it", || shown().contains("number 1 was not used yet"));
    wait_until("it has expired", || shown().contains("state      invalid"));
    let text = shown();
    let reason = format!("expired: the ledger has passed its deadline, height {last_height}");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&reason), "{text}");
    let (_, text) = run(&["show", "alice", "alice-2-", "--database", &database]);
    assert!(text.contains(&format!("deadline   height {last_height}\n")), "{text}");
    let (_, text) = run(&["explain", "alice-2-", "--url", &url]);
    assert!(text.contains("invalid"), "{text}");
}
