//! The command `demo --ledger evm`.

use std::{fs, process::Command};

use grid_batch_test_support::process::{ProcessOutput, run};
use serde_json::Value;

use crate::{GRID_BATCH, harness::WithdrawalHarness};

/// Runs the demonstration with the variables that it needs to find anvil.
fn run_demo(arguments: &[&str]) -> ProcessOutput {
    let mut command = GRID_BATCH.command(["demo", "--ledger", "evm"]);
    for name in ["PATH", "GRID_BATCH_TEST_ANVIL"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.args(arguments);
    run(command)
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
