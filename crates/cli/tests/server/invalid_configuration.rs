//! Invalid configuration: the server prints one line that says what to do, and does not start.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use grid_batch_test_support::process::run;

use crate::{GRID_BATCH, harness::BatchHarness};

/// Asserts that `serve` with this file fails with a message that contains the text.
#[track_caller]
fn assert_config_error(file: &Path, expected: &str) {
    let mut command = GRID_BATCH.command(["serve", "--config"]);
    command.arg(file);
    let output = run(command);
    let message = output.error_message();
    assert!(message.contains(expected), "{expected:?} is not in: {message}");
}

#[test]
fn unreadable_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    assert_config_error(
        &file,
        &format!("the configuration {} cannot be read: No such", file.display()),
    );
    assert_config_error(directory.path(), "cannot be read: Is a directory");
    fs::write(&file, b"listen = \"\xff\"").unwrap();
    assert_config_error(&file, "cannot be read: stream did not contain valid UTF-8");
}

#[test]
fn error_in_a_file_is_reported_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    for (text, expected) in [
        ("\n[poll]\ninterval = ", "line 3 of "),
        ("\n\nlisten", "not valid TOML"),
        ("[poll]\nintervall = \"1s\"", "line 2 of "),
        ("[poll]\nintervall = \"1s\"", "did you mean poll.interval?"),
        ("[pol]\ninterval = \"1s\"", "there is no setting pol"),
        ("\nlisten = 80", "line 2 of "),
        ("listen = \"localhost\"", "such as \"127.0.0.1:8080\""),
        ("listen = \"0.0.0.0:80\"", "behind a proxy that authorizes clients"),
        ("database = \"mysql://h/d\"", "postgres://... or postgresql://..."),
        ("database = \"sqlite://:memory:\"", "database in memory"),
        ("[ledger]\nkind = \"fabric\"", "it must be \"sawtooth\", \"scabbard\" or \"evm\""),
        ("[submit]\nconcurrency = 0", "it must be a number from 1"),
        ("[submit]\nconcurrency = 1\nconcurrency = 2", "line 3 of "),
    ] {
        fs::write(&file, text).unwrap();
        assert_config_error(&file, expected);
    }
}

#[test]
fn error_in_the_environment_is_reported() {
    for (name, value, expected) in [
        ("GRID_BATCH_LISTN", "127.0.0.1:0", "did you mean GRID_BATCH_LISTEN?"),
        ("GRID_BATCH_POLL_INTERVAL", "often", "the variable GRID_BATCH_POLL_INTERVAL: "),
        ("GRID_BATCH_CONFIG", "/nowhere.toml", "the configuration /nowhere.toml cannot be read"),
    ] {
        let mut command = GRID_BATCH.command(["serve"]);
        command.env(name, value);
        let output = run(command);
        let message = output.error_message();
        assert!(message.contains(expected), "{name}: {message}");
    }
}

/// Each command says it before it looks at the ledger, the port or the database.
#[cfg(not(feature = "postgres-tls"))]
#[test]
fn tls_that_this_build_lacks_is_refused() {
    let plain = "postgres://grid@127.0.0.1:1/grid";
    let required = format!("{plain}?sslmode=require");
    for (url, mode, demand) in [
        (required.as_str(), "prefer", "sslmode=require"),
        (plain, "verify-full", "PGSSLMODE=verify-full"),
    ] {
        let said = |arguments: &[&str]| {
            let mut command = GRID_BATCH.command(arguments);
            command.envs([("GRID_BATCH_DATABASE", url), ("PGSSLMODE", mode)]);
            run(command)
        };
        let expected =
            format!("{demand} demands TLS, which this build does not have: install a package");
        for command in [&["config", "check"][..], &["serve"], &["migrate"]] {
            let output = said(command);
            let message = output.error_message();
            assert!(message.contains(&expected), "{command:?}: {message}");
            assert_eq!(output.exit_code, Some(78), "{command:?}");
        }
        let doctor = said(&["doctor", "--json"]);
        assert_eq!(doctor.exit_code, Some(1));
        assert!(doctor.stdout.contains(&expected), "{doctor:?}");
    }
}

#[test]
fn flag_with_an_invalid_value_is_named() {
    let output = run(GRID_BATCH.command(["serve", "--submit-concurrency", "many"]));
    let message = output.error_message();
    assert_eq!(
        message,
        "the flag --submit-concurrency: submit.concurrency is \"many\"; it must be a number from 1 to 10000"
    );
}

#[test]
fn missing_setting_is_named() {
    for (arguments, expected) in [
        (
            &["serve"][..],
            "ledger.kind is not set; it must be \"sawtooth\", \"scabbard\" or \"evm\"",
        ),
        (&["serve", "--ledger-kind", "sawtooth"], "ledger.urls is not set"),
        (
            &["serve", "--ledger-kind", "scabbard", "--ledger-urls", "http://a"],
            "ledger.name is not set; it is required, because nodes of this kind of ledger tell nothing that identifies it",
        ),
        (
            &["config", "check", "--ledger-kind", "scabbard", "--ledger-urls", "http://a"],
            "ledger.name is not set; it is required, because nodes of this kind of ledger tell nothing that identifies it",
        ),
        (
            &[
                "serve",
                "--ledger-kind",
                "scabbard",
                "--ledger-name",
                "test",
                "--ledger-urls",
                "http://a",
            ],
            "ledger.key_file is not set",
        ),
    ] {
        let output = run(GRID_BATCH.command(arguments));
        let message = output.error_message();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn unusable_key_file_is_named_without_its_contents() {
    let harness = BatchHarness::scabbard(1);
    let key = harness.path().join("other-key");
    let path = key.display().to_string();
    let error_message = |key: &str| {
        let flags = [("--log", "error"), ("--ledger-key-file", key)];
        run(harness.command(&flags)).error_message().to_owned()
    };
    assert!(error_message(&path).contains(&format!("the key file {path} cannot be used: No such")));
    for text in ["", "hidden", &"zz".repeat(32), &"00".repeat(32), &"07".repeat(33)] {
        fs::write(&key, text).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let message = error_message(&path);
        assert!(message.starts_with(&format!("the key file {path} cannot be used: ")), "{message}");
        assert!(text.is_empty() || !message.contains(text), "{message}");
    }
    assert!(!harness.database_file().exists(), "a server that did not start created a database");
}

#[test]
fn key_file_that_others_can_read_is_refused() {
    let harness = BatchHarness::scabbard(1);
    let key = harness.path().join("key");
    fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
    let output = run(harness.command(&[("--log", "error")]));
    let message = output.error_message();
    let expected = format!("its mode is 640; restrict it with `chmod 600 {}`", key.display());
    assert!(message.contains(&expected), "{message}");
    assert!(!harness.database_file().exists());
}

#[test]
fn port_in_use_is_named_and_no_database_is_created() {
    let harness = BatchHarness::scabbard(1);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let output = run(harness.command(&[("--log", "error"), ("--listen", &address)]));
    let message = output.error_message();
    assert!(message.contains(&format!("cannot listen on {address}: Address already in use")));
    assert!(!harness.database_file().exists());
}
