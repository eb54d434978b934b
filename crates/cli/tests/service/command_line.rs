//! What the program prints, and where.

use std::fs;

use grid_batch_core::BatchState;
use grid_batch_ledger_sim::read_record;
use serde_json::Value;

use crate::{
    batches::batches,
    bench::{Bench, count},
    program::{Ended, Program, after, grid_batch},
    until::until,
};

#[test]
fn the_configuration_in_force_is_printed_as_a_file_that_says_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    fs::write(&file, "[queue]\nround = 3\n[ledger]\nurls = [\"http://a\", \"http://b\"]\n")
        .unwrap();
    let mut command = grid_batch(["config", "--poll-interval", "3s", "--config"]);
    command.arg(&file).env("GRID_BATCH_LISTEN", "127.0.0.1:1");
    let first = Ended::of(command);
    assert_eq!((first.code, first.stderr.as_str()), (Some(0), ""));
    for line in [
        "round = 3",
        "urls = [\"http://a\", \"http://b\"]",
        "interval = \"3s\"",
        "listen = \"127.0.0.1:1\"",
    ] {
        assert!(first.stdout.lines().any(|other| other == line), "{line}: {}", first.stdout);
    }

    fs::write(&file, &first.stdout).unwrap();
    let mut command = grid_batch(["config", "--config"]);
    command.arg(&file);
    let second = Ended::of(command);
    assert_eq!(settings(&second.stdout), settings(&first.stdout));
}

/// The lines without those that say where a value is from.
fn settings(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn the_file_in_the_directory_of_the_start_is_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("grid-batch.toml"), "[queue]\nround = 3\n").unwrap();
    let within = format!("cd {}", dir.path().display());
    let ended = Ended::of(after(&within, grid_batch(["config"])));
    assert!(ended.stdout.contains("\nround = 3\n"), "{ended:?}");
}

#[test]
fn every_command_has_its_help() {
    for (command, expected) in [
        (&["--help"][..], "Usage: grid-batch <COMMAND>"),
        (&["serve", "--help"], "--ledger-kind <"),
        (&["config", "--help"], "--poll-interval <"),
        (&["demo", "--help"], "--keep <DIR>"),
        (&["ledger-sim", "--help"], "late-answer"),
    ] {
        let ended = Ended::of(grid_batch(command));
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{command:?}");
        assert!(ended.stdout.contains(expected), "{command:?}: {}", ended.stdout);
    }
}

#[test]
fn what_is_no_command_line_is_an_error_that_tells_of_the_help() {
    for (arguments, expected) in [
        (&[][..], "Usage: grid-batch"),
        (&["serv"], "serv"),
        (&["serve", "--listn", "127.0.0.1:0"], "--listen"),
        (&["serve", "surplus"], "surplus"),
        (&["serve", "--listen"], "--listen"),
        (&["demo", "--batches", "0"], "--batches"),
        (&["demo", "--faults", "many"], "harsh"),
        (&["ledger-sim"], "<sawtooth|scabbard>"),
        (&["ledger-sim", "sawtooth", "--port", "65536"], "--port"),
        (&["ledger-sim", "sawtooth", "--fault", "fire=1"], "late-answer"),
        (&["ledger-sim", "sawtooth", "--fault", "busy=2"], "from 0 to 1"),
    ] {
        let ended = Ended::of(grid_batch(arguments));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn what_goes_together_badly_is_an_error_that_says_so() {
    for (arguments, expected) in [
        (&["ledger-sim", "scabbard"][..], "a scabbard ledger needs a --service"),
        (&["ledger-sim", "sawtooth", "--service", "a::b"], "leave --service out"),
        (&["ledger-sim", "sawtooth", "--pending-for", "soon"], "--pending-for is \"soon\""),
        (&["demo", "--json", "--ledger", "sawtooth", "--services", "2"], "has no services"),
        (&["demo", "--json", "--database", "mysql://h/d"], "postgresql://"),
    ] {
        let ended = Ended::of(grid_batch(arguments));
        let failure = ended.failure();
        assert!(failure.contains(expected), "{arguments:?}: {failure}");
    }
}

#[test]
fn the_ledger_of_the_command_line_serves_a_service_and_ends_when_told() {
    let bench = Bench::scabbard(2);
    let record = bench.path().join("record.jsonl");
    let mut command = grid_batch(["ledger-sim", "scabbard", "--port", "0", "--record"]);
    command.arg(&record).args(bench.services.iter().flat_map(|service| ["--service", service]));
    let mut ledger = Program::start(command);
    let place = ledger.until_it_prints("The ledger is at ");
    let url = place.split(' ').next().unwrap();

    let serving = bench.serve_with(&[("--ledger-urls", url)]);
    let all = batches(&bench.services, 5);
    serving.hand_in(&all);
    let store = bench.store();
    until("all are committed", || count(&store, BatchState::Committed) == all.len());
    serving.stop();

    ledger.signal("TERM");
    let ended = ledger.ended();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.ends_with("It has applied or refused 10 batches\n"), "{}", ended.stdout);
    assert_eq!(read_record(&record).unwrap().len(), 10);
}

#[test]
fn a_demonstration_for_programs_prints_one_object_and_nothing_else() {
    let command =
        grid_batch(["demo", "--json", "--services", "2", "--batches", "10", "--seed", "5"]);
    let ended = Ended::of(command);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
    let audit: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&audit["accepted"], &audit["committed"]), (&10.into(), &10.into()));
    assert_eq!(audit["seed"], 5);
}

#[test]
fn a_demonstration_for_people_shows_its_progress_apart_from_its_audit() {
    let command = grid_batch(["demo", "--services", "2", "--batches", "10", "--log", "info"]);
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("result  clean"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("INFO"), "{}", ended.stdout);
    for part in ["10 batches for 2 services", "ended     10 of 10", " INFO "] {
        assert!(ended.stderr.contains(part), "{part:?}: {}", ended.stderr);
    }
}
