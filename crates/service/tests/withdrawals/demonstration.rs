//! The demonstration of withdrawals.

use serde_json::Value;

use crate::program::{Ended, grid_batch};

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
    let ended = Ended::of({
        let mut command = grid_batch(["demo", "--ledger", "evm", "--json"]);
        command.env("GRID_BATCH_TEST_ANVIL", "/nowhere/anvil");
        command
    });
    assert!(ended.failure().contains("/nowhere/anvil"), "{ended:?}");
}
