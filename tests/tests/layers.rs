//! Crates depend only on crates of lower layers, and core has few dependencies.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use grid_batch_tests::sources::{read, root, source_files, without_tests};

/// The crates of the workspace that each crate may depend on directly. A new crate needs a row.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("grid-batch-core", &[]),
    ("grid-batch-support", &["grid-batch-core"]),
    ("grid-batch-protocol", &["grid-batch-core"]),
    ("grid-batch-withdrawals", &["grid-batch-core"]),
    ("grid-batch-work", &["grid-batch-core", "grid-batch-support"]),
    ("grid-batch-store", &["grid-batch-core", "grid-batch-support", "grid-batch-withdrawals"]),
    ("grid-batch-queuer", &["grid-batch-core", "grid-batch-support", "grid-batch-work"]),
    (
        "grid-batch-submitter",
        &["grid-batch-core", "grid-batch-nodes", "grid-batch-support", "grid-batch-work"],
    ),
    ("grid-batch-nodes", &["grid-batch-core", "grid-batch-support"]),
    ("grid-batch-ledger-check", &["grid-batch-core", "grid-batch-nodes", "grid-batch-support"]),
    (
        "grid-batch-poller",
        &["grid-batch-core", "grid-batch-nodes", "grid-batch-support", "grid-batch-work"],
    ),
    ("grid-batch-claims", &["grid-batch-core", "grid-batch-support", "grid-batch-work"]),
    ("grid-batch-http", &["grid-batch-core", "grid-batch-nodes", "grid-batch-support"]),
    ("grid-batch-settings", &["grid-batch-core", "grid-batch-http", "grid-batch-support"]),
    (
        "grid-batch-sawtooth",
        &[
            "grid-batch-core",
            "grid-batch-http",
            "grid-batch-nodes",
            "grid-batch-protocol",
            "grid-batch-settings",
            "grid-batch-support",
        ],
    ),
    (
        "grid-batch-scabbard",
        &[
            "grid-batch-core",
            "grid-batch-http",
            "grid-batch-nodes",
            "grid-batch-protocol",
            "grid-batch-settings",
            "grid-batch-support",
        ],
    ),
    (
        "grid-batch-evm",
        &[
            "grid-batch-core",
            "grid-batch-http",
            "grid-batch-nodes",
            "grid-batch-settings",
            "grid-batch-support",
            "grid-batch-withdrawals",
        ],
    ),
    ("grid-batch-client", &["grid-batch-core", "grid-batch-http", "grid-batch-support"]),
    ("grid-batch-otlp", &["grid-batch-core", "grid-batch-http", "grid-batch-support"]),
    ("grid-batch-webhooks", &["grid-batch-core", "grid-batch-http", "grid-batch-support"]),
    (
        "grid-batch-api",
        &["grid-batch-core", "grid-batch-protocol", "grid-batch-support", "grid-batch-withdrawals"],
    ),
    (
        "grid-batch-monitoring",
        &[
            "grid-batch-api",
            "grid-batch-claims",
            "grid-batch-core",
            "grid-batch-ledger-check",
            "grid-batch-nodes",
            "grid-batch-poller",
            "grid-batch-queuer",
            "grid-batch-submitter",
            "grid-batch-support",
            "grid-batch-withdrawals",
            "grid-batch-work",
        ],
    ),
    ("grid-batch-ledger-sim", &["grid-batch-core", "grid-batch-protocol", "grid-batch-support"]),
    (
        "grid-batch-service",
        &[
            "grid-batch-api",
            "grid-batch-claims",
            "grid-batch-client",
            "grid-batch-core",
            "grid-batch-evm",
            "grid-batch-http",
            "grid-batch-ledger-check",
            "grid-batch-monitoring",
            "grid-batch-nodes",
            "grid-batch-otlp",
            "grid-batch-poller",
            "grid-batch-protocol",
            "grid-batch-queuer",
            "grid-batch-sawtooth",
            "grid-batch-scabbard",
            "grid-batch-settings",
            "grid-batch-store",
            "grid-batch-submitter",
            "grid-batch-support",
            "grid-batch-webhooks",
            "grid-batch-withdrawals",
            "grid-batch-work",
        ],
    ),
    (
        "grid-batch-demo",
        &[
            "grid-batch-client",
            "grid-batch-core",
            "grid-batch-evm",
            "grid-batch-ledger-sim",
            "grid-batch-local-chain",
            "grid-batch-protocol",
            "grid-batch-service",
            "grid-batch-store",
            "grid-batch-support",
            "grid-batch-withdrawals",
        ],
    ),
    (
        "grid-batch",
        &[
            "grid-batch-client",
            "grid-batch-core",
            "grid-batch-demo",
            "grid-batch-ledger-sim",
            "grid-batch-protocol",
            "grid-batch-service",
            "grid-batch-store",
            "grid-batch-support",
            "grid-batch-withdrawals",
        ],
    ),
    (
        "grid-batch-benches",
        &[
            "grid-batch-core",
            "grid-batch-protocol",
            "grid-batch-service",
            "grid-batch-store",
            "grid-batch-test-postgres",
        ],
    ),
    ("grid-batch-ledger-tests", &["grid-batch-client", "grid-batch-core"]),
    ("grid-batch-local-chain", &["grid-batch-support"]),
    ("grid-batch-test-chain", &["grid-batch-local-chain", "grid-batch-support"]),
    ("grid-batch-test-postgres", &[]),
    ("grid-batch-test-support", &["grid-batch-core", "grid-batch-protocol"]),
    ("grid-batch-tests", &["grid-batch-core", "grid-batch-service", "grid-batch-store"]),
];

/// The most lines of code in the service, without comments, blank lines and tests: settings and a list of parts. A rule
/// belongs to the crate whose part it is about.
const MOST_LINES_OF_SERVICE: usize = 3_150;

/// All that core may depend on, directly or not: nothing that runs, connects or stores.
const CORE_DEPENDENCIES: &[&str] = &[
    "futures-core",
    "proc-macro2",
    "quote",
    "syn",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
];

#[test]
fn crates_depend_only_on_lower_layers() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED_DEPENDENCIES.iter().copied().collect();
    for package in workspace_packages() {
        let allowed = allowed
            .get(package.as_str())
            .unwrap_or_else(|| panic!("{package} has no row in ALLOWED_DEPENDENCIES; add one"));
        for dependency in dependencies(&package, "1") {
            assert!(
                !dependency.starts_with("grid-batch") || allowed.contains(&dependency.as_str()),
                "{package} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn service_is_thin() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    let is_of_service = |file: &PathBuf| file.starts_with(root().join("crates/service"));
    let files = source_files().into_iter().filter(is_of_service);
    let lines: usize =
        files.map(|file| without_tests(&read(&file)).lines().filter(is_code).count()).sum();
    assert!(lines > 1_000, "only {lines} lines were found");
    assert!(lines <= MOST_LINES_OF_SERVICE, "the service has {lines} lines of code");
}

#[test]
fn core_depends_only_on_allowed_packages() {
    let dependencies = dependencies("grid-batch-core", "99");
    let allowed: BTreeSet<String> = CORE_DEPENDENCIES.iter().map(ToString::to_string).collect();
    let unexpected: Vec<_> = dependencies.difference(&allowed).collect();
    assert!(unexpected.is_empty(), "core must not depend on {unexpected:?}");
}

#[test]
fn release_package_links_no_demo_and_no_simulator() {
    let linked = linked(&["--no-default-features", "--features", "sawtooth,scabbard,evm,otlp"]);
    for package in ["grid-batch-demo", "grid-batch-ledger-sim", "grid-batch-local-chain"] {
        assert!(!linked.contains(package), "a release package must not link {package}");
    }
}

#[test]
fn adapter_is_linked_only_with_its_feature() {
    let adapters = ["sawtooth", "scabbard", "evm"];
    for feature in adapters {
        let linked = linked(&["--no-default-features", "--features", feature]);
        for adapter in adapters {
            let package = format!("grid-batch-{adapter}");
            assert_eq!(linked.contains(&package), adapter == feature, "{package} with {feature}");
        }
    }
}

#[test]
fn kms_of_a_cloud_is_linked_only_with_its_feature() {
    let signers = [("evm-aws-kms", "alloy-signer-aws"), ("evm-gcp-kms", "alloy-signer-gcp")];
    for feature in ["evm", signers[0].0, signers[1].0] {
        let linked = linked(&["--no-default-features", "--features", feature]);
        for (of, package) in signers {
            assert_eq!(linked.contains(package), of == feature, "{package} with {feature}");
        }
    }
}

#[test]
fn export_of_traces_is_linked_only_with_its_feature() {
    for (features, is_linked) in [("evm", false), ("evm,otlp", true)] {
        let linked = linked(&["--no-default-features", "--features", features]);
        assert_eq!(linked.contains("opentelemetry-otlp"), is_linked, "with {features}");
    }
}

/// The packages that the program links with these features.
fn linked(features: &[&str]) -> BTreeSet<String> {
    let arguments = ["tree", "-p", "grid-batch", "-e", "normal", "--prefix", "none"];
    cargo(&[&arguments[..], features].concat())
}

/// Bounds the build time of the program. Raise the bound only for a dependency that is worth its build time.
#[test]
fn program_builds_few_packages() {
    // If an update of `Cargo.lock` exceeds it by packages named `icu_*`:
    // `cargo update -p idna_adapter --precise 1.1.0`.
    const MOST: usize = 192;
    let built = cargo(&["tree", "-p", "grid-batch", "-e", "normal,build", "--prefix", "none"]);
    assert!(built.len() <= MOST, "{} packages: {built:?}", built.len());
}

fn workspace_packages() -> BTreeSet<String> {
    cargo(&["tree", "--workspace", "--depth", "0", "--prefix", "none"])
}

/// The names of a package's normal dependencies, down to this depth.
fn dependencies(package: &str, depth: &str) -> BTreeSet<String> {
    let mut names =
        cargo(&["tree", "-p", package, "-e", "normal", "--depth", depth, "--prefix", "none"]);
    names.remove(package);
    names
}

/// The first word of each line of cargo's output.
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
