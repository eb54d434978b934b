//! The guide works: its commands are run in order, with other ports.

use std::{
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use grid_batch_test_chain::find_anvil;

use crate::GRID_BATCH;

/// Stands before a block of commands that the test does not run.
const NOT_RUN: &str = "<!-- not run by the test -->";
/// The ports that the guide uses.
const PORTS: [&str; 2] = ["8545", "8080"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The commands of the guide that the test runs, block by block.
fn blocks(guide: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut rest = guide;
    while let Some((before, after)) = rest.split_once("```sh\n") {
        let (block, after) = after.split_once("```\n").unwrap();
        if !before.trim_end().ends_with(NOT_RUN) {
            blocks.push(block.to_owned());
        }
        rest = after;
    }
    blocks
}

/// Free ports below those that the system gives to other tests.
fn free_ports() -> [u16; 2] {
    let first = 20_000 + u16::try_from(process::id() % 5_000).unwrap() * 2;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut free = (first..32_000).filter(is_free);
    [free.next().unwrap(), free.next().unwrap()]
}

fn directory_of(program: &Path) -> &Path {
    program.parent().unwrap()
}

#[test]
fn commands_of_the_guide_pay_withdrawals() {
    let mut script = blocks(&read("docs/withdrawals-guide.md")).concat();
    for (port, free) in PORTS.iter().zip(free_ports()) {
        assert!(script.contains(port));
        script = script.replace(port, &free.to_string());
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("guide.sh");
    // A failed command must not leave the node and the server, which would keep the output open. If both have ended, `kill`
    // has nothing to end, and must not fail the script.
    let ends = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT";
    fs::write(&file, format!("{ends}\ncd '{}'\n{script}", repository().display())).unwrap();

    let anvil = find_anvil().unwrap();
    let mut path = vec![directory_of(&anvil), directory_of(Path::new(GRID_BATCH.0))];
    let system = env::var_os("PATH").unwrap();
    let system: Vec<PathBuf> = env::split_paths(&system).collect();
    path.extend(system.iter().map(PathBuf::as_path));
    // `timeout` ends the node and the server too, because they are in its process group.
    let mut command = Command::new("timeout");
    command.args(["100", "bash", "-euo", "pipefail"]).arg(file).stdin(Stdio::null());
    command.env_clear().env("PATH", env::join_paths(path).unwrap());
    command.env("HOME", directory.path()).env("TMPDIR", directory.path());
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}\n{errors}", output.status);

    let withdrawn = printed.matches("\"state\":\"withdrawn\"").count();
    assert_eq!(withdrawn, 3, "{printed}");
    for text in
        ["Already Paid", "claimed already", "gwei", "\"fail_reason\":\"", "\"status\":\"ok\""]
    {
        assert!(printed.contains(text), "no {text}: {printed}");
    }
}

#[test]
fn guide_installs_the_anvil_that_the_tests_use() {
    let script = read("scripts/test");
    let version = script.split_once("local version=").unwrap().1;
    let version = version.split_whitespace().next().unwrap();
    let guide = read("docs/withdrawals-guide.md");
    let package = format!("@foundry-rs/anvil-linux-amd64@{version}");
    assert!(guide.contains(&package), "the guide does not install {package}");
}
