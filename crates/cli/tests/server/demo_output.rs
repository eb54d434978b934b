//! What the command `demo` prints, and how a signal stops it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use grid_batch_ledger_sim::read_record;
use grid_batch_test_support::{
    http::{request, send},
    process::{TestProcess, run},
    tmux::Tmux,
    wait::{wait_for, wait_until},
};
use tempfile::TempDir;

use crate::GRID_BATCH;

/// The meaning of a number, which is printed with it.
const MEANING: &str = "the server has stored them";

fn demo(arguments: &[&str], temporary: &Path) -> Command {
    let mut command = GRID_BATCH.command([&["demo", "--services", "5"], arguments].concat());
    command.env("TMPDIR", temporary);
    command
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn assert_fits(output: &str) {
    let wide = output.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{output}");
}

#[test]
fn lines_fit_80_columns_and_words_are_explained() {
    let temporary = TempDir::new().unwrap();
    let output = run(demo(&["--batches", "60", "--faults", "harsh"], temporary.path()));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert_fits(&output.stderr);
    assert_fits(&output.stdout);
    assert_eq!(output.stderr.matches(MEANING).count(), 1, "{output:?}");
    assert!(output.stderr.lines().last().unwrap().contains("   60 ended"), "{output:?}");
    assert!(output.stdout.contains("applied more than once: must be 0"), "{output:?}");
    assert!(!output.stdout.contains("queue"), "Scabbard has none: {output:?}");
    assert!(output.stdout.contains("docs/tutorial.md"), "{output:?}");
    assert_eq!(entries(temporary.path()), [""; 0].map(PathBuf::from));
}

#[test]
fn demo_without_faults_shows_no_numbers_about_faults() {
    let temporary = TempDir::new().unwrap();
    let output = run(demo(&["--batches", "60"], temporary.path()));
    for name in ["sent again", "in doubt", "decided by operator", "ledger restarts", "invalid"] {
        assert!(!output.stdout.contains(name), "{name}: {output:?}");
    }
}

#[test]
fn server_of_a_demo_can_be_kept_running() {
    let temporary = TempDir::new().unwrap();
    let arguments = ["--batches", "10", "--keep-running"];
    let process = TestProcess::spawn(demo(&arguments, temporary.path()));
    let dashboard = wait_for("the address of the dashboard", || {
        let printed = process.stdout();
        let address = printed.split_once("Its dashboard: ")?.1;
        address.split_once('\n').map(|(address, _)| address.to_owned())
    });
    let address = dashboard.strip_prefix("http://").unwrap().strip_suffix("/dashboard").unwrap();
    let page = send(address.parse().unwrap(), &request("GET", "/dashboard", &[], b"")).unwrap();
    assert_eq!(page.status, 200, "{page:?}");
    process.signal("INT");
    let output = process.wait();
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(output.stdout.contains("result  clean"), "{output:?}");
    assert_eq!(entries(temporary.path()), [""; 0].map(PathBuf::from));
}

#[test]
fn progress_is_rewritten_on_a_terminal() {
    let temporary = TempDir::new().unwrap();
    let tmux = Tmux::start(&demo(&["--batches", "250"], temporary.path()), 80, 50);
    assert_eq!(tmux.wait_for_end(), 0);
    let output = tmux.history();
    assert_eq!(output.matches(MEANING).count(), 1, "{output}");
    assert!(output.contains("250 of 250 batches ended"), "{output}");
    assert!(output.contains("result  clean"), "{output}");
}

#[test]
fn terminal_without_room_gets_plain_lines() {
    let temporary = TempDir::new().unwrap();
    let tmux = Tmux::start(&demo(&["--batches", "10"], temporary.path()), 80, 6);
    assert_eq!(tmux.wait_for_end(), 0);
    let output = tmux.history();
    assert!(output.contains("10 ended"), "{output}");
}

#[test]
fn ctrl_c_stops_the_demo_and_removes_its_files() {
    let temporary = TempDir::new().unwrap();
    let tmux = Tmux::start(&demo(&["--batches", "100000"], temporary.path()), 80, 24);
    tmux.wait_for_text(MEANING);
    assert_eq!(entries(temporary.path()).len(), 1);
    tmux.press(&["C-c"]);
    assert_eq!(tmux.wait_for_end(), 130);
    let screen = tmux.screen();
    assert!(screen.contains("\nStopped. Nothing is left.\n"), "{screen}");
    assert_eq!(entries(temporary.path()), [""; 0].map(PathBuf::from));
}

#[test]
fn kept_demo_that_is_stopped_continues() {
    let temporary = TempDir::new().unwrap();
    let kept = temporary.path().join("kept");
    let keep = ["--keep", kept.to_str().unwrap()];
    let arguments = [&keep[..], &["--batches", "300"]].concat();
    let first = TestProcess::spawn(demo(&arguments, temporary.path()));
    let recorded = || read_record(kept.join("ledger.jsonl")).map_or(0, |record| record.len());
    wait_until("the ledger has an entry", || recorded() > 0);
    first.signal("TERM");
    let output = first.wait();
    assert_eq!(output.exit_code, Some(143), "{output:?}");
    assert!(output.stderr.contains("The same command continues from "), "{output:?}");
    assert!(recorded() < 300);
    let output = run(demo(&arguments, temporary.path()));
    assert!(output.stdout.contains("result  clean") && recorded() >= 300, "{output:?}");
}
