//! The guides work: their commands are run in order, with other ports.

use std::{
    array,
    collections::BTreeSet,
    env, fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

use grid_batch_test_chain::find_anvil;

use crate::GRID_BATCH;

/// Stands before a block of commands that the test does not run.
const NOT_RUN: &str = "<!-- not run by the test -->";
const WITHDRAWALS: &str = "docs/withdrawals-guide.md";
const RELAYER: &str = "docs/guides/openzeppelin-relayer.md";
/// The first part of the guide to withdrawals that the other one does not begin with.
const AFTER_THE_KEY: &str = "## A pool\n";
/// The ports that the guides use: those of the node, the server and a receiver of webhooks.
const PORTS: [&str; 3] = ["8545", "8080", "8090"];

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
fn free_ports<const N: usize>() -> [u16; N] {
    // Also other ones than those of another test of this process.
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(process::id() % 3_000).unwrap() * 4;
    let first = first + TAKEN.fetch_add(4, Ordering::Relaxed);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut free = (first..32_700).filter(is_free);
    array::from_fn(|_| free.next().unwrap())
}

fn directory_of(program: &Path) -> &Path {
    program.parent().unwrap()
}

/// Runs commands of guides, and returns what they print.
fn run_commands(mut script: String) -> String {
    for (port, free) in PORTS.iter().zip(free_ports::<{ PORTS.len() }>()) {
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
    printed.into_owned()
}

#[test]
fn commands_of_the_guide_pay_withdrawals() {
    let printed = run_commands(blocks(&read(WITHDRAWALS)).concat());
    let withdrawn = printed.matches("\"state\":\"withdrawn\"").count();
    assert_eq!(withdrawn, 3, "{printed}");
    for text in
        ["Already Paid", "claimed already", "gwei", "\"fail_reason\":\"", "\"status\":\"ok\""]
    {
        assert!(printed.contains(text), "no {text}: {printed}");
    }
}

/// The requests in the last column of the tables of a guide, as methods and routes.
fn requests_in_tables(guide: &str) -> BTreeSet<(&str, &str)> {
    let rows = guide.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit('|').next());
    let codes = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    codes
        .filter_map(|code| {
            code.split_once(" /").map(|(method, _)| (method, &code[method.len() + 1..]))
        })
        .collect()
}

#[test]
fn relayer_guide_makes_every_request_of_its_table() {
    let (withdrawals, guide) = (read(WITHDRAWALS), read(RELAYER));
    let (before, _) = withdrawals.split_once(AFTER_THE_KEY).unwrap();
    let printed = run_commands([blocks(before), blocks(&guide)].concat().concat());
    let requests = requests_in_tables(&guide);
    assert!(requests.len() > 10, "{requests:?}");
    for (method, route) in requests {
        // The metrics are read before their own request is counted.
        let counted = match route {
            "/metrics" => "# TYPE grid_batch_http_requests_total".to_owned(),
            _ => format!("{{route=\"{route}\",method=\"{method}\",status=\"2"),
        };
        assert!(
            printed.contains(&counted),
            "{method} {route} is in the table, and is not sent: {printed}"
        );
    }
    assert_eq!(printed.matches("\"state\":\"executed\"").count(), 2, "{printed}");
    for text in ["\"state\":\"parked\"", "\"fail_reason\":\"cancelled", "v1,", "committed"] {
        assert!(printed.contains(text), "no {text}: {printed}");
    }
}

#[test]
fn guide_installs_the_anvil_that_the_tests_use() {
    let script = read("scripts/test");
    let version = script.split_once("local version=").unwrap().1;
    let version = version.split_whitespace().next().unwrap();
    let guide = read(WITHDRAWALS);
    let package = format!("@foundry-rs/anvil-linux-amd64@{version}");
    assert!(guide.contains(&package), "the guide does not install {package}");
}
