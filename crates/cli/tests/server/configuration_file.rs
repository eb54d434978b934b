//! `grid-batch config`: what it prints and writes, and which values are refused.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use grid_batch_test_support::{
    batches::signed_batches,
    process::{run, with_shell_setup},
};

use crate::{
    GRID_BATCH,
    harness::{BatchHarness, BatchServer},
};

fn config_command(file: &Path) -> Command {
    let mut command = GRID_BATCH.command(["config", "--config"]);
    command.arg(file);
    command
}

/// Runs `serve` with nothing but the file that `config` has written, and lets it commit a batch.
fn assert_written_file_starts(harness: &BatchHarness) {
    let file = harness.path().join("written.toml");
    let path = file.display().to_string();
    let output = harness.run_command(&["config", "--output", &path]);
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    let mut command = GRID_BATCH.command(["serve", "--config"]);
    command.arg(&file);
    let server = BatchServer::start(command);
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn written_configuration_starts_for_scabbard() {
    assert_written_file_starts(&BatchHarness::scabbard(1));
}

#[test]
fn written_configuration_starts_for_sawtooth() {
    assert_written_file_starts(&BatchHarness::sawtooth());
}

/// The names of the settings that are written, or described as comments: lines such as `# key = "value"`.
fn keys(text: &str, prefix: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let keys = lines.filter_map(|line| line.split_once(" = ").map(|(key, _)| key.to_owned()));
    keys.filter(|key| !key.contains([' ', '#'])).collect()
}

#[test]
fn new_file_has_the_settings_that_matter_and_no_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let init = |extra: &[&str]| {
        let output = ["--output", file.to_str().unwrap()];
        let written = run(GRID_BATCH.command([&["config", "init"], &output[..], extra].concat()));
        assert_eq!(written.exit_code, Some(0), "{written:?}");
        fs::read_to_string(&file).unwrap()
    };
    let new = init(&["--ledger-kind", "sawtooth", "--ledger-urls", "http://127.0.0.1:1"]);
    assert_eq!(keys(&new, ""), ["kind", "urls"], "{new}");
    let described = keys(&new, "# ");
    for key in ["database", "listen", "log", "name", "share", "allowed_hosts", "mode", "after"] {
        assert!(described.iter().any(|it| it == key), "{key}: {new}");
    }
    assert!(described.len() <= 14 && new.lines().count() < 80, "{new}");
    assert_eq!(run(config_command(&file)).exit_code, Some(0));

    let all = init(&["--all", "--force", "--submit-concurrency", "3"]);
    assert_eq!(keys(&all, ""), ["concurrency"], "{all}");
    assert!(keys(&all, "# ").iter().any(|key| key == "hold_after"), "{all}");
    // A file in which every setting is written is reduced to those that differ.
    let printed = run(GRID_BATCH.command(["config", "--submit-concurrency", "3"])).stdout;
    fs::write(&file, printed).unwrap();
    let reduced = init(&["--force", "--config", file.to_str().unwrap()]);
    assert_eq!(keys(&reduced, ""), ["concurrency"], "{reduced}");
}

#[test]
fn written_file_is_private_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let path = file.display().to_string();
    let write = |extra: &[&str]| {
        let command = GRID_BATCH.command([&["config", "--output", &path], extra].concat());
        run(with_shell_setup("umask 000", command))
    };
    assert_eq!(write(&[]).exit_code, Some(0));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();

    let refused = write(&["--submit-concurrency", "3"]);
    assert!(refused.error_message().contains("exists; add --force to replace it"), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    assert_eq!(write(&["--submit-concurrency", "3", "--force"]).exit_code, Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains("\nconcurrency = 3\n"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn configuration_can_be_written_onto_its_own_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    fs::write(&file, "[submit]\nconcurrency = 3\n").unwrap();
    let mut command = config_command(&file);
    command.args(["--force", "--output"]).arg(&file);
    assert_eq!(run(command).exit_code, Some(0));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains("\nconcurrency = 3\n") && written.contains("\n[poll]\n"), "{written}");
}

#[test]
fn redirection_onto_its_own_file_is_refused() {
    for redirection in [">", ">>"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("c.toml");
        fs::write(&file, "[submit]\nconcurrency = 3\n").unwrap();
        let mut shell = Command::new("sh");
        let script = format!("exec \"$0\" config --config \"$1\" {redirection} \"$1\"");
        shell.env_clear().arg("-c").arg(script).arg(GRID_BATCH.0).arg(&file);
        let output = run(shell);
        let message = output.error_message();
        let hint = format!("use --output {} --force", file.display());
        assert!(message.contains(&hint), "{message}");
        let expected = if redirection == ">" { "" } else { "[submit]\nconcurrency = 3\n" };
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
fn printed_secret_is_replaced_and_then_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    fs::write(&file, "database = \"postgres://u:hidden@127.0.0.1:1/d\"\n").unwrap();
    let printed = run(config_command(&file));
    assert!(
        printed.stdout.contains("database = \"postgres://u:***@127.0.0.1:1/d\""),
        "{printed:?}"
    );
    fs::write(&file, &printed.stdout).unwrap();
    let output = run(config_command(&file));
    let message = output.error_message();
    assert!(message.contains("database has *** in place of a secret"), "{message}");
    assert!(message.contains("{ file = ") && message.contains("--show-secrets"), "{message}");

    // The variable that had the secret has it still.
    let mut command = config_command(&file);
    command.env("GRID_BATCH_DATABASE", "postgres://u:hidden@127.0.0.1:1/d");
    assert_eq!(run(command).exit_code, Some(0));
}

#[test]
fn secrets_are_written_when_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let mut command = GRID_BATCH.command(["config", "--show-secrets", "--output"]);
    command.arg(&file).env("GRID_BATCH_DATABASE", "postgres://u:hidden@127.0.0.1:1/d");
    assert_eq!(run(command).exit_code, Some(0));
    assert!(fs::read_to_string(&file).unwrap().contains("\"postgres://u:hidden@127.0.0.1:1/d\""));
    assert_eq!(run(config_command(&file)).exit_code, Some(0));
}

#[test]
fn file_of_a_setting_is_printed_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let (file, secret) = (directory.path().join("c.toml"), directory.path().join("url"));
    fs::write(&secret, "postgres://u:hidden@127.0.0.1:1/d\n").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, format!("database = {{ file = {:?} }}\n", secret.display().to_string()))
        .unwrap();
    let printed = run(config_command(&file)).stdout;
    assert!(
        printed
            .contains(&format!("\ndatabase = {{ file = {:?} }}\n", secret.display().to_string()))
    );
    assert!(!printed.contains("hidden") && !printed.contains("\ndatabase = \""), "{printed}");
    fs::write(&file, &printed).unwrap();
    assert_eq!(run(config_command(&file)).exit_code, Some(0));
}

#[test]
fn unusable_values_are_refused_with_the_rule() {
    for (flag, value, rule) in [
        ("--log", "infoo", "did you mean info?"),
        ("--log", "info,grid_batch_poller=loud", "off, error, warn, info, debug or trace"),
        ("--listen", "127.0.0.1:99999", "a port from 0 to 65535"),
        ("--ledger-urls", "http://node:99999", "the port must be a number from 1 to 65535"),
        ("--ledger-urls", "http://node:", "the port must be a number from 1 to 65535"),
        ("--ledger-urls", "http://:8008", "a URL must have a host"),
        ("--database", "postgres://h:99999/d", "the port must be a number from 1 to 65535"),
        ("--poll-interval", "2h", "it must be at most 1h"),
        ("--claims-full-expiry", "99999999 years", "it must be at most 10 years"),
        ("--poll-hold-after", "1us", "it must be at least 1ms"),
        ("--poll-interval", "1", "it must be a number with a unit"),
        ("--submit-concurrency", "1000001", "it must be a number from 1 to 10000"),
        ("--store-connections", "4000000000", "it must be a number from 1 to 1000"),
        ("--intake-body-limit", "10", "it must be a number from 1024 to"),
        ("--ledger-key-file", "http://u:p@h", "it must be the path of a file"),
    ] {
        let output = run(GRID_BATCH.command(["config", flag, value]));
        let message = output.error_message();
        assert!(message.starts_with(&format!("the flag {flag}: ")), "{flag} {value}: {message}");
        assert!(message.contains(rule), "{flag} {value}: {message}");
    }
}

#[test]
fn log_level_of_the_simulated_ledger_is_checked() {
    let output =
        run(GRID_BATCH.command(["ledger-sim", "sawtooth", "--port", "0", "--log", "infoo"]));
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("did you mean info?"), "{output:?}");
}
