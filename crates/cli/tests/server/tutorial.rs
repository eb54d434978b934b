//! `docs/tutorial.md`: its commands run in their order, and print what the page shows.

use std::{
    env,
    net::TcpListener,
    path::Path,
    process::{self, Command},
};

use crate::GRID_BATCH;

const PAGE: &str = include_str!("../../../../docs/tutorial.md");
/// The ports that the page uses.
const PORTS: [&str; 2] = ["8008", "8080"];
/// Printed after the output of each block.
const END: &str = "-- end of a block --";

/// A block of commands, and what the page shows after it.
#[derive(Debug)]
struct Step {
    commands: String,
    shown: Option<String>,
}

/// The blocks of commands. A block `text` after one, with nothing but empty lines between, is its output.
fn steps() -> Vec<Step> {
    let blocks = PAGE.split("```sh\n").skip(1);
    blocks
        .map(|rest| {
            let (commands, after) = rest.split_once("```\n").unwrap();
            let shown = after.trim_start().strip_prefix("```text\n");
            let shown = shown.map(|rest| rest.split_once("```").unwrap().0.to_owned());
            Step { commands: commands.to_owned(), shown }
        })
        .collect()
}

/// The commands, with free ports in place of those of the page.
fn script(steps: &[Step]) -> String {
    let mut script =
        "set -euo pipefail\nexec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
            .to_owned();
    for step in steps {
        script.push_str(&step.commands);
        script.push_str(&format!("echo '{END}'\n"));
    }
    for (port, free) in PORTS.iter().zip(free_ports()) {
        assert!(script.contains(port), "the page does not use port {port}");
        script = script.replace(port, &free.to_string());
    }
    script
}

/// Free ports below those that the system and the guide to withdrawals give to other tests.
fn free_ports() -> impl Iterator<Item = u16> {
    let first = 12_000 + u16::try_from(process::id() % 3_000).unwrap() * 2;
    (first..20_000).filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
}

/// The words of each line, with ids, times and ages replaced by what they are.
fn form(output: &str) -> Vec<Vec<String>> {
    output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split_whitespace().map(form_of_word).collect())
        .collect()
}

fn form_of_word(word: &str) -> String {
    let end = word.trim_start_matches(|it: char| it.is_ascii_hexdigit());
    let digits = word.len() - end.len();
    if digits >= 12 {
        return format!("<id>{}", end.trim_start_matches('…'));
    }
    if digits == word.len() && word.bytes().all(|it| it.is_ascii_digit()) {
        return "<number>".to_owned();
    }
    let is_time = word.ends_with('Z') && word.contains('T') && word.starts_with("20");
    if is_time { "<time>".to_owned() } else { word.to_owned() }
}

#[test]
fn tutorial_shows_what_commands_print() {
    let steps = steps();
    let directory = tempfile::tempdir().unwrap();
    let programs = Path::new(GRID_BATCH.0).parent().unwrap();
    let path = env::var_os("PATH").unwrap();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&path)));
    let output = Command::new("timeout")
        .args(["60", "bash", "-c", &script(&steps)])
        .env_clear()
        .env("PATH", path.unwrap())
        .env("HOME", directory.path())
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}:\n{printed}", output.status);
    let outputs: Vec<&str> = printed.split(&format!("{END}\n")).collect();
    assert_eq!(outputs.len(), steps.len() + 1, "{printed}");
    for (step, output) in steps.iter().zip(outputs) {
        let shown = step.shown.as_deref().unwrap_or_default();
        assert_eq!(form(output), form(shown), "{} printed\n{output}", step.commands);
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        assert!(widest <= 80, "{widest} characters: {shown}");
    }
    assert!(steps.iter().filter(|step| step.shown.is_some()).count() >= 10, "{steps:?}");
}

#[test]
fn form_of_output_keeps_all_but_ids_and_times() {
    let ended = "21690c65a2568d14016b5427 committed after 12 s";
    assert_eq!(form(ended), form("03f2cdc70a77… committed after 3 s"));
    assert_ne!(form(ended), form("03f2cdc70a77… invalid after 3 s"));
    assert_ne!(form(ended), form("applied committed after 3 s"));
    assert_eq!(form("2026-11-23T13:21:37Z a"), form("2027-01-01T00:00:00.5Z a"));
}
