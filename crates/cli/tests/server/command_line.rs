//! Arguments, help, exit codes and output of the commands.

use std::fs;

use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::read_record;
use grid_batch_test_support::{
    batches::signed_batches,
    process::{TestProcess, run, with_shell_setup},
    wait::wait_until,
};
use serde_json::Value;

use crate::{
    GRID_BATCH,
    harness::{BatchHarness, count_in_state},
};

#[test]
fn printed_configuration_is_a_file_with_the_same_meaning() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    fs::write(&file, "[submit]\nconcurrency = 3\n[ledger]\nurls = [\"http://a\", \"http://b\"]\n")
        .unwrap();
    let mut command = GRID_BATCH.command(["config", "--poll-interval", "3s", "--config"]);
    command.arg(&file).env("GRID_BATCH_LISTEN", "127.0.0.1:1");
    let first = run(command);
    assert_eq!((first.exit_code, first.stderr.as_str()), (Some(0), ""));
    for line in [
        "concurrency = 3",
        "urls = [\"http://a\", \"http://b\"]",
        "interval = \"3s\"",
        "listen = \"127.0.0.1:1\"",
    ] {
        assert!(first.stdout.lines().any(|other| other == line), "{line}: {}", first.stdout);
    }

    fs::write(&file, &first.stdout).unwrap();
    let mut command = GRID_BATCH.command(["config", "--config"]);
    command.arg(&file);
    let second = run(command);
    assert_eq!(settings(&second.stdout), settings(&first.stdout));
}

/// The lines without the comments, which say where a value comes from.
fn settings(config: &str) -> Vec<&str> {
    config.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn configuration_file_in_the_current_directory_is_read() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("grid-batch.toml"), "[submit]\nconcurrency = 3\n").unwrap();
    let change_directory = format!("cd {}", directory.path().display());
    let output = run(with_shell_setup(&change_directory, GRID_BATCH.command(["config"])));
    assert!(output.stdout.contains("\nconcurrency = 3\n"), "{output:?}");
}

#[test]
fn every_command_has_help() {
    for (arguments, expected) in [
        (&["--help"][..], "Usage: grid-batch <COMMAND>"),
        (&["serve", "--help"], "--ledger-kind <"),
        (&["config", "--help"], "--retention-after <"),
        (&["demo", "--help"], "--keep <DIR>"),
        (&["ledger-sim", "--help"], "late-answer"),
    ] {
        let output = run(GRID_BATCH.command(arguments));
        assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(output.stdout.contains(expected), "{arguments:?}: {}", output.stdout);
    }
}

/// The other settings stand in `config reference`.
#[test]
fn help_of_serve_has_at_most_150_lines() {
    for (name, value) in [("COLUMNS", "80"), ("NO_COLUMNS", "")] {
        let mut command = GRID_BATCH.command(["serve", "--help"]);
        command.env_remove("COLUMNS").env(name, value);
        let help = run(command).stdout;
        let count = help.lines().count();
        assert!(count <= 150, "{count} lines: {help}");
        assert!(help.contains("`grid-batch config reference`"), "{help}");
    }
}

#[test]
fn flags_of_ledgers_that_are_compiled_in_are_shown() {
    for command in ["serve", "config"] {
        let help = run(GRID_BATCH.command([command, "--help"])).stdout;
        for (flag, is_compiled_in) in [
            ("--evm-", cfg!(feature = "evm")),
            ("--gas-admins-", cfg!(feature = "evm")),
            ("--pools-", cfg!(feature = "evm")),
            ("--ledger-key-file", cfg!(feature = "scabbard")),
        ] {
            assert_eq!(help.contains(flag), is_compiled_in, "{command} {flag}: {help}");
        }
    }
}

#[test]
fn invalid_arguments_are_reported_with_a_hint() {
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
        (&["ledger-sim", "sawtooth", "--pending-for", "soon"], "a number with a unit"),
    ] {
        let output = run(GRID_BATCH.command(arguments));
        assert_eq!((output.exit_code, output.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn incompatible_arguments_are_rejected() {
    for (arguments, expected) in [
        (&["ledger-sim", "scabbard"][..], "a scabbard ledger needs a --service"),
        (&["ledger-sim", "sawtooth", "--service", "a::b"], "leave --service out"),
        (&["demo", "--json", "--ledger", "sawtooth", "--services", "2"], "has only one service"),
        (&["demo", "--json", "--database", "mysql://h/d"], "postgresql://"),
    ] {
        let output = run(GRID_BATCH.command(arguments));
        let message = output.error_message();
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn ledger_sim_command_serves_until_sigterm() {
    let harness = BatchHarness::scabbard(2);
    let record = harness.path().join("record.jsonl");
    let mut command = GRID_BATCH.command(["ledger-sim", "scabbard", "--port", "0", "--record"]);
    command.arg(&record).args(harness.services.iter().flat_map(|service| ["--service", service]));
    let mut ledger = TestProcess::spawn(command);
    let listening = ledger.wait_for_stdout("The ledger is at ");
    let url = listening.split(' ').next().unwrap();

    let server = harness.serve_with(&[("--ledger-urls", url)]);
    let batches = signed_batches(&harness.services, 5);
    server.submit(&batches);
    let store = harness.store();
    wait_until("all batches are committed", || {
        count_in_state(&store, BatchState::Committed) == batches.len()
    });
    server.stop();

    ledger.signal("TERM");
    let output = ledger.wait();
    assert_eq!(output.exit_code, Some(0));
    assert!(output.stdout.ends_with("Batches executed: 10\n"), "{}", output.stdout);
    assert_eq!(read_record(&record).unwrap().len(), 10);
}

#[test]
fn demo_with_json_prints_one_object_only() {
    let command =
        GRID_BATCH.command(["demo", "--json", "--services", "2", "--batches", "10", "--seed", "5"]);
    let output = run(command);
    assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""));
    assert_eq!(output.stdout.lines().count(), 1, "{}", output.stdout);
    let audit: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&audit["accepted"], &audit["committed"]), (&10.into(), &10.into()));
    assert_eq!(audit["seed"], 5);
}

#[test]
fn demo_prints_its_progress_to_standard_error() {
    let command =
        GRID_BATCH.command(["demo", "--services", "2", "--batches", "10", "--log", "info"]);
    let output = run(command);
    assert_eq!(output.exit_code, Some(0));
    assert!(output.stdout.contains("result  clean"), "{}", output.stdout);
    assert!(!output.stdout.contains("INFO"), "{}", output.stdout);
    for part in ["10 batches for 2 services", "   10 accepted    10 ended", " INFO "] {
        assert!(output.stderr.contains(part), "{part:?}: {}", output.stderr);
    }
}
