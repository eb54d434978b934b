//! Commands that need no running server: `doctor`, `migrate`, `config`, `completions` and `man`.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
};

use grid_batch_test_support::process::{ProcessOutput, run};
use serde_json::Value;

use crate::{GRID_BATCH, harness::BatchHarness};

fn run_command(arguments: &[&str]) -> ProcessOutput {
    run(GRID_BATCH.command(arguments))
}

/// The outcomes of `doctor`, by the names of the checks.
fn outcomes(output: &ProcessOutput) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    findings.iter().map(|it| (text(it, "check"), text(it, "outcome"))).collect()
}

fn assert_outcome(output: &ProcessOutput, check: &str, outcome: &str) {
    let expected = (check.to_owned(), outcome.to_owned());
    assert!(outcomes(output).contains(&expected), "{expected:?}: {output:?}");
}

#[test]
fn doctor_finds_nothing_wrong_with_a_working_server() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let address = server.address.to_string();
    let output = harness.run_command(&["doctor", "--json", "--listen", &address]);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    for check in ["configuration", "limits", "database", "clock", "ledger", "server"] {
        assert_outcome(&output, check, "ok");
    }
    let text = harness.run_command(&["doctor", "--listen", &address]).stdout;
    assert!(text.contains("a server is ready at") && text.contains("problems: 0"), "{text}");
    server.stop();
}

#[test]
fn doctor_tells_what_is_wrong_and_what_to_do() {
    let harness = BatchHarness::sawtooth();
    let missing = harness.path().join("missing").join("batches.db");
    let database = format!("sqlite://{}", missing.display());
    let flags = ["doctor", "--json", "--ledger-urls", "http://127.0.0.1:1"];
    let output = harness.run_command(&[&flags[..], &["--database", &database]].concat());
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    assert_outcome(&output, "ledger", "problem");
    assert_outcome(&output, "database", "problem");
    assert!(output.stdout.contains("create the folder"), "{output:?}");

    let invalid = harness.run_command(&["doctor", "--json", "--poll-interval", "soon"]);
    assert_outcome(&invalid, "configuration", "problem");
    let unset = run_command(&["doctor", "--json"]);
    assert_outcome(&unset, "configuration", "problem");
    assert!(unset.stdout.contains("set ledger.kind"), "{unset:?}");
}

#[test]
fn doctor_and_start_warn_of_missing_peers() {
    const MISSING: &str = "services.*.peers is not set: if the node of a service";
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let output = harness.run_command(&["doctor", "--json"]);
    assert_outcome(&output, "ledger", "warning");
    assert!(output.stdout.contains(MISSING), "{output:?}");
    let output = server.stop_with("TERM");
    assert!(output.stderr.contains(MISSING), "{output:?}");
}

#[test]
fn doctor_warns_of_files_that_others_can_read() {
    let harness = BatchHarness::sawtooth();
    harness.serve().stop();
    let file = harness.database_file();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let output = harness.run_command(&["doctor", "--json"]);
    assert_outcome(&output, "permissions", "warning");
    assert!(output.stdout.contains("chmod 600"), "{output:?}");
}

#[test]
fn doctor_finds_another_program_at_the_address() {
    let harness = BatchHarness::sawtooth();
    harness.serve().stop();
    let other = harness.ledger.url();
    let address = other.trim_start_matches("http://");
    let output = harness.run_command(&["doctor", "--json", "--listen", address]);
    assert_outcome(&output, "server", "problem");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = harness.run_command(&["doctor", "--json", "--listen", &free]);
    assert_outcome(&output, "server", "ok");
}

#[test]
fn schema_is_checked_and_created() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("batches.db");
    let database = format!("sqlite://{}", file.display());
    let run = |arguments: &[&str]| run_command(&[arguments, &["--database", &database]].concat());
    let missing = run(&["migrate", "--check"]);
    assert!(missing.exit_code == Some(1) && missing.stdout.contains("no tables"), "{missing:?}");
    assert!(!file.exists(), "the check has created the file");
    assert!(run(&["migrate"]).stdout.contains("created"));
    assert!(run(&["migrate"]).stdout.contains("up to date"));
    assert_eq!(run(&["migrate", "--check"]).exit_code, Some(0));
}

#[test]
fn configuration_is_made_and_checked() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grid-batch.toml").display().to_string();
    let made = run_command(&["config", "init", "--output", &file]);
    assert_eq!(made.exit_code, Some(0), "{made:?}");
    assert_eq!(run_command(&["config", "init", "--output", &file]).exit_code, Some(1));
    let check =
        |flags: &[&str]| run_command(&[&["config", "check", "--config", &file], flags].concat());
    let unset = check(&[]);
    assert!(unset.exit_code == Some(78) && unset.stderr.contains("ledger.kind"), "{unset:?}");
    let valid = check(&["--ledger-kind", "sawtooth", "--ledger-urls", "http://127.0.0.1:8008"]);
    assert_eq!(valid.stdout, "the configuration is valid\n", "{valid:?}");
    let shown = run_command(&["config", "show", "--config", &file]);
    assert_eq!(shown.stdout, run_command(&["config", "--config", &file]).stdout);
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    let help = run_command(&["--help"]).stdout;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() > 30, "{commands:?}");
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("man1");
    let made = run_command(&["man", "--output", folder.to_str().unwrap()]);
    assert_eq!(made.exit_code, Some(0), "{made:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run_command(&["completions", shell]).stdout;
        for command in &commands {
            assert!(script.contains(command), "{shell} does not complete {command}");
        }
    }
    for command in commands.iter().filter(|command| **command != "help") {
        assert!(folder.join(format!("grid-batch-{command}.1")).exists(), "{command} has no page");
        let own = run_command(&[command, "--help"]).stdout;
        let has_settings = own.contains("--retention-after");
        assert_eq!(has_settings, ["serve", "config"].contains(command), "{command}: {own}");
    }
    assert!(run_command(&["man"]).stdout.contains(".TH grid-batch 1"));
}
