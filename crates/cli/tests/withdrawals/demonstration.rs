//! The demonstration of withdrawals.

use std::{fs, process::Command};

use serde_json::Value;

use crate::{
    program::{Ended, grid_batch},
    world::World,
};

/// What the program needs of our environment to find anvil.
fn demo(arguments: &[&str]) -> Ended {
    let mut command = grid_batch(["demo", "--ledger", "evm"]);
    for name in ["PATH", "GRID_BATCH_TEST_ANVIL"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    Ended::of({
        command.args(arguments);
        command
    })
}

#[test]
fn the_demonstration_ends_clean_after_a_kill_and_a_spike() {
    let ended = demo(&["--batches", "10", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let audit: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&audit["promised"], &audit["kills"]), (&12.into(), &1.into()), "{audit}");
    assert_eq!((&audit["withdrawn"], &audit["failed"]), (&10.into(), &2.into()), "{audit}");
    assert!(audit["parked_seconds"].as_f64().unwrap() > 0.0, "{audit}");
}

#[test]
fn what_a_genuine_chain_does_not_have_is_refused() {
    for name in ["--services", "--seed"] {
        let ended = demo(&[name, "3"]);
        assert!(ended.failure().contains(name), "{ended:?}");
    }
}

#[test]
fn without_anvil_it_says_how_to_get_it() {
    // Elsewhere than in the build directory, where it would be found.
    let elsewhere = tempfile::tempdir().unwrap();
    let program = elsewhere.path().join("grid-batch");
    fs::copy(env!("CARGO_BIN_EXE_grid-batch"), &program).unwrap();
    let mut command = Command::new(program);
    command.args(["demo", "--ledger", "evm", "--json"]).env_clear();
    let ended = Ended::of(command);
    assert!(ended.failure().contains("npm install @foundry-rs/anvil-"), "{ended:?}");
}

#[test]
fn an_anvil_that_was_named_and_is_not_there_is_named() {
    let mut command = grid_batch(["demo", "--ledger", "evm", "--json"]);
    command.env("GRID_BATCH_TEST_ANVIL", "/nowhere/anvil");
    let ended = Ended::of(command);
    assert!(ended.failure().contains("/nowhere/anvil"), "{ended:?}");
}

#[test]
fn withdrawals_of_another_chain_are_not_gone_on_with() {
    let world = World::new(1);
    let serving = world.serve();
    serving.schedule(&world.order(0, 1));
    serving.program.kill();
    let database = format!("sqlite://{}", world.path().join("withdrawals.db").display());
    let ended = demo(&["--database", &database]);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("withdrawals of another chain"), "{ended:?}");
    assert_eq!(ended.code, Some(1));
}
