//! The command `demo --ledger evm`.

use std::{fs, path::Path, process::Command};

use grid_batch_test_support::{
    process::{ProcessOutput, TestProcess, run},
    wait::wait_until,
};
use serde_json::Value;

use crate::{GRID_BATCH, harness::WithdrawalHarness};

/// The demonstration with the variables that it needs to find anvil.
fn demo(arguments: &[&str]) -> Command {
    let mut command = GRID_BATCH.command(["demo", "--ledger", "evm"]);
    for name in ["PATH", "GRID_BATCH_TEST_ANVIL"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.args(arguments);
    command
}

fn run_demo(arguments: &[&str]) -> ProcessOutput {
    run(demo(arguments))
}

#[test]
fn demo_ends_clean_after_a_kill_and_a_price_spike() {
    let output = run_demo(&["--batches", "10", "--json"]);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let audit: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&audit["promised"], &audit["kills"]), (&12.into(), &1.into()), "{audit}");
    assert_eq!((&audit["withdrawn"], &audit["failed"]), (&10.into(), &2.into()), "{audit}");
    assert!(audit["parked_seconds"].as_f64().unwrap() > 0.0, "{audit}");
}

#[test]
fn signal_stops_the_demo_and_what_it_started() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = demo(&[]);
    command.env("TMPDIR", temporary.path());
    let process = TestProcess::spawn(command);
    process.wait_for_log(" gwei ");
    assert!(processes_that_name(temporary.path()) > 0);
    process.signal("INT");
    let output = process.wait();
    assert_eq!(output.exit_code, Some(130), "{output:?}");
    assert!(output.stderr.lines().all(|line| line.chars().count() <= 80), "{output:?}");
    wait_until("the server and the chain have ended", || {
        processes_that_name(temporary.path()) == 0
    });
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// How many processes have the path in their arguments.
fn processes_that_name(path: &Path) -> usize {
    let path = path.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    // A process may end meanwhile.
    let arguments = processes.filter_map(|process| fs::read(process.join("cmdline")).ok());
    arguments.filter(|text| String::from_utf8_lossy(text).contains(path)).count()
}

#[test]
fn options_of_simulated_ledgers_are_rejected() {
    for name in ["--services", "--seed"] {
        let output = run_demo(&[name, "3"]);
        assert!(output.error_message().contains(name), "{output:?}");
    }
}

#[test]
fn missing_anvil_is_reported_with_a_hint() {
    // A binary in the build directory would find anvil there.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("grid-batch");
    fs::copy(GRID_BATCH.0, &program).unwrap();
    let mut command = Command::new(program);
    command.args(["demo", "--ledger", "evm", "--json"]).env_clear();
    let output = run(command);
    assert!(output.error_message().contains("npm install @foundry-rs/anvil-"), "{output:?}");
}

#[test]
fn configured_anvil_that_is_missing_is_named() {
    let mut command = GRID_BATCH.command(["demo", "--ledger", "evm", "--json"]);
    command.env("GRID_BATCH_TEST_ANVIL", "/nowhere/anvil");
    let output = run(command);
    assert!(output.error_message().contains("/nowhere/anvil"), "{output:?}");
}

#[test]
fn database_of_another_chain_is_rejected() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    server.schedule(&harness.withdrawal_request(0, 1));
    server.process.kill();
    let database = format!("sqlite://{}", harness.path().join("withdrawals.db").display());
    let output = run_demo(&["--database", &database]);
    let last = output.stderr.lines().last().unwrap();
    assert!(last.contains("is bound to a ledger (evm, chain 31337"), "{output:?}");
    assert_eq!(output.exit_code, Some(1));
}
