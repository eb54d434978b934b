//! The house stands as it is drawn: arrows point down only, and core stays light.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

/// What each room may know, directly. A new room is drawn here first.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("grid-batch-core", &[]),
    ("grid-batch-protocol", &["grid-batch-core"]),
    ("grid-batch-support", &["grid-batch-core"]),
    ("grid-batch-withdrawals", &["grid-batch-core"]),
    ("grid-batch-store", &["grid-batch-core", "grid-batch-support", "grid-batch-withdrawals"]),
    ("grid-batch-queuer", &["grid-batch-core"]),
    ("grid-batch-submitter", &["grid-batch-core"]),
    ("grid-batch-http", &["grid-batch-core"]),
    ("grid-batch-sawtooth", &["grid-batch-core", "grid-batch-http", "grid-batch-protocol"]),
    ("grid-batch-scabbard", &["grid-batch-core", "grid-batch-http", "grid-batch-protocol"]),
    ("grid-batch-evm", &["grid-batch-core", "grid-batch-http", "grid-batch-withdrawals"]),
    ("grid-batch-poller", &["grid-batch-core"]),
    (
        "grid-batch-api",
        &["grid-batch-core", "grid-batch-protocol", "grid-batch-store", "grid-batch-withdrawals"],
    ),
    ("grid-batch-ledger-sim", &["grid-batch-core", "grid-batch-protocol"]),
    (
        "grid-batch-service",
        &[
            "grid-batch-api",
            "grid-batch-core",
            "grid-batch-evm",
            "grid-batch-http",
            "grid-batch-ledger-sim",
            "grid-batch-poller",
            "grid-batch-protocol",
            "grid-batch-queuer",
            "grid-batch-sawtooth",
            "grid-batch-scabbard",
            "grid-batch-store",
            "grid-batch-submitter",
            "grid-batch-test-chain",
            "grid-batch-withdrawals",
        ],
    ),
    ("grid-batch-test-chain", &[]),
    ("grid-batch-test-postgres", &[]),
    ("grid-batch-tests", &["grid-batch-core", "grid-batch-store"]),
];

/// All that core may bring along: nothing that runs, connects or stores.
const CORE_BRINGS: &[&str] = &[
    "futures-core",
    "proc-macro2",
    "quote",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
];

#[test]
fn arrows_point_down_only() {
    let may_know: BTreeMap<&str, &[&str]> = MAY_KNOW.iter().copied().collect();
    for room in rooms() {
        let allowed = may_know
            .get(room.as_str())
            .unwrap_or_else(|| panic!("{room} is not in the drawing: say there what it may know"));
        for known in dependencies(&room, "1") {
            assert!(
                !known.starts_with("grid-batch") || allowed.contains(&known.as_str()),
                "{room} must not know {known}"
            );
        }
    }
}

#[test]
fn core_brings_nothing_that_runs_connects_or_stores() {
    let brought = dependencies("grid-batch-core", "99");
    let allowed: BTreeSet<String> = CORE_BRINGS.iter().map(ToString::to_string).collect();
    let beyond: Vec<_> = brought.difference(&allowed).collect();
    assert!(beyond.is_empty(), "core brings {beyond:?}");
}

/// The packages of the workspace.
fn rooms() -> BTreeSet<String> {
    cargo(&["tree", "--workspace", "--depth", "0", "--prefix", "none"])
}

/// The packages that one depends on for what it ships, down to this depth.
fn dependencies(package: &str, depth: &str) -> BTreeSet<String> {
    let mut names =
        cargo(&["tree", "-p", package, "-e", "normal", "--depth", depth, "--prefix", "none"]);
    names.remove(package);
    names
}

/// The first word of each line that cargo prints.
fn cargo(arguments: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(ToOwned::to_owned)
        .collect()
}
