//! Which crates a registry gets, and what it shows of each.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use grid_batch_tests::sources::root;
use serde_json::Value;

/// The categories of crates.io that crates use. A registry refuses others.
const CATEGORIES: &[&str] = &[
    "api-bindings",
    "asynchronous",
    "command-line-utilities",
    "config",
    "cryptography::cryptocurrencies",
    "database",
    "development-tools::testing",
    "network-programming",
    "parser-implementations",
    "simulation",
    "web-programming::http-client",
    "web-programming::http-server",
];

#[test]
fn test_helpers_and_measurements_are_not_published() {
    let names: Vec<String> =
        packages().iter().filter(|it| !is_published(it)).map(name_of).collect();
    let expected = ["benches", "test-chain", "test-postgres", "test-support", "tests"];
    assert_eq!(names, expected.map(|name| format!("grid-batch-{name}")));
}

/// A registry refuses a crate whose dependencies it does not have; those without a version are left out.
#[test]
fn published_crates_name_only_published_ones() {
    let unpublished: BTreeSet<String> =
        packages().iter().filter(|it| !is_published(it)).map(name_of).collect();
    for package in packages().iter().filter(|it| is_published(it)) {
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_left_out = dependency["kind"] == "dev" && dependency["req"] == "*";
            let name = name_of(dependency);
            assert!(is_left_out || !unpublished.contains(&name), "{}: {name}", name_of(package));
        }
    }
}

#[test]
fn published_crates_say_what_they_are() {
    for package in packages().iter().filter(|it| is_published(it)) {
        let name = name_of(package);
        for field in ["description", "documentation", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        assert!(manifest.with_file_name("LICENSE").is_file(), "{name} has no license file");
        let keywords = texts(&package["keywords"]);
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        assert!(keywords.iter().all(|keyword| keyword.len() <= 20), "{name}: {keywords:?}");
        let categories = texts(&package["categories"]);
        assert!((1..=5).contains(&categories.len()), "{name}: {categories:?}");
        assert!(categories.iter().all(|it| CATEGORIES.contains(it)), "{name}: {categories:?}");
    }
}

/// CI reads the version from the manifest.
#[test]
fn everyone_builds_with_the_declared_compiler() {
    let image = fs::read_to_string(root().join("deploy/docker/Dockerfile")).unwrap();
    let toolchain = fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    for package in packages() {
        let version = package["rust_version"].as_str().unwrap();
        let name = name_of(&package);
        assert!(image.contains(&format!("FROM rust:{version}-")), "{name}: {version}");
        assert!(toolchain.contains(&format!("channel = \"{version}\"")), "{name}: {version}");
    }
}

/// A tag of an action can be moved to other code.
#[test]
fn actions_of_the_workflow_are_named_by_commit() {
    for file in [".github/workflows/ci.yml", ".github/actions/part/action.yml"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let used: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("uses: ")).map(|it| it.1).collect();
        assert!(!used.is_empty(), "{file}");
        for action in used.iter().filter(|action| !action.starts_with("./")) {
            let commit = action.split_once('@').and_then(|(_, commit)| commit.split(' ').next());
            let is_commit = commit
                .is_some_and(|it| it.len() == 40 && it.bytes().all(|b| b.is_ascii_hexdigit()));
            assert!(is_commit, "{file}: {action}");
        }
    }
}

#[test]
fn all_that_is_shipped_is_built_with_one_feature() {
    for (file, features) in [
        ("deploy/docker/Dockerfile", "-p grid-batch --no-default-features --features packaged\n"),
        ("scripts/package-deb", "-p grid-batch --no-default-features --features packaged\n"),
        ("scripts/release", "-p grid-batch --no-default-features --features packaged\n"),
        (
            "scripts/sbom",
            r#""-p", "grid-batch", "--no-default-features", "--features", "packaged"]"#,
        ),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(features), "{file}");
    }
}

#[test]
fn clients_have_the_version_of_the_workspace() {
    let version = packages()[0]["version"].as_str().unwrap().to_owned();
    let npm: Value = serde_json::from_str(&read("clients/typescript/package.json")).unwrap();
    assert_eq!(npm["version"], version);
    assert!(
        read("clients/python/pyproject.toml").contains(&format!("\nversion = \"{version}\"\n"))
    );
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The crates of the workspace, ordered by name.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(mut packages) = metadata["packages"].take() else { panic!("{metadata}") };
    packages.sort_by_key(name_of);
    packages
}

/// Whether the manifest does not say `publish = false`.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

fn name_of(package: &Value) -> String {
    package["name"].as_str().unwrap().to_owned()
}

fn texts(values: &Value) -> Vec<&str> {
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
}
