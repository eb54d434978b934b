//! Secrets: where they may come from, and that no output has a part of one.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::signed_batches,
    process::{ProcessOutput, run},
};

use crate::{GRID_BATCH, harness::BatchHarness};

/// Each part of a password that could be printed.
const PARTS: [&str; 2] = ["Hid0den", "sEc1ret"];

/// Values of settings with a password that is not escaped, or in a place where it does not belong.
fn values_with_passwords() -> Vec<String> {
    let passwords = ["Hid0den@sEc1ret", "Hid0den/sEc1ret", "Hid0den#sEc1ret", "Hid0den?sEc1ret"]
        .iter()
        .chain(&["Hid0den:sEc1ret", "Hid0den%sEc1ret", "Hid0den,sEc1ret", "Hid0den sEc1ret"])
        .chain(&["Hid0den://sEc1ret", "Hid0den&sEc1ret=", "Hid0den%40sEc1ret"]);
    let forms: [fn(&str) -> String; 9] = [
        |password| format!("postgres://u:{password}@127.0.0.1:1/d"),
        |password| format!("postgresql://127.0.0.1:1/d?user=u&password={password}"),
        |password| format!("host=127.0.0.1 port=1 user=u password={password}"),
        |password| format!("password={password} host=127.0.0.1"),
        |password| format!("mysql://u:{password}@h/d"),
        |password| format!("u:{password}@h/d"),
        |password| password.to_owned(),
        |password| format!("http://u:{password}@127.0.0.1:1"),
        |password| format!("x::y=http://u:{password}@127.0.0.1:1"),
    ];
    passwords.flat_map(|password| forms.iter().map(move |form| form(password))).collect()
}

/// Spreads the values over this many places of a setting, as every value in every place takes hundreds of processes: each
/// value is in one place, and each place has every form and every password.
fn with_places(places: usize) -> impl Iterator<Item = (String, usize)> {
    values_with_passwords().into_iter().enumerate().map(move |(at, value)| (value, at % places))
}

#[track_caller]
fn assert_no_part(context: &str, output: &ProcessOutput) {
    let text = format!("{}{}", output.stdout, output.stderr);
    for part in PARTS {
        assert!(!text.contains(part), "{context}: {text}");
    }
}

fn write_private(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

/// `serve` with settings of which one cannot be used, so that it ends at once.
fn failing_server(directory: &Path) -> Command {
    let mut command =
        GRID_BATCH.command(["serve", "--log", "trace", "--testing-lock-timeout", "1s"]);
    command
        .env("GRID_BATCH_LEDGER_KIND", "sawtooth")
        .env("GRID_BATCH_LEDGER_URLS", "http://127.0.0.1:1")
        .env("GRID_BATCH_LISTEN", "127.0.0.1:0")
        .current_dir(directory);
    command
}

#[test]
fn no_error_has_a_part_of_a_database_password() {
    let directory = tempfile::tempdir().unwrap();
    let (config, secret) = (directory.path().join("c.toml"), directory.path().join("secret"));
    for (value, place) in with_places(4) {
        let mut command = failing_server(directory.path());
        match place {
            0 => command.env("GRID_BATCH_DATABASE", &value),
            1 => command.args(["--database", &value]),
            2 => {
                write_private(&config, &format!("database = {}", toml_text(&value)));
                command.arg("--config").arg(&config)
            }
            _ => {
                write_private(&secret, &value);
                command.env("GRID_BATCH_DATABASE_FILE", &secret)
            }
        };
        let context = format!("{command:?}: {value}");
        let output = run(command);
        assert_ne!(output.exit_code, Some(0), "{context}");
        assert_no_part(&context, &output);
    }
}

#[test]
fn no_error_has_a_part_of_a_password_of_a_node() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["LEDGER_URLS", "SERVICES_NODE", "SERVICES_PEERS", "EVM_ORACLE_URL"];
    for (value, place) in with_places(names.len()) {
        let mut command = GRID_BATCH.command(["config"]);
        command.env(format!("GRID_BATCH_{}", names[place]), &value).current_dir(directory.path());
        let context = format!("{command:?}");
        assert_no_part(&context, &run(command));
    }
}

#[test]
fn no_error_has_a_part_of_a_misplaced_password() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let url = "postgres://u:Hid0den@sEc1ret@h/d";
    for text in [
        format!("database = {url}"),
        "database = \"postgres://u:Hid0den\"sEc1ret@h/d\"".to_owned(),
        format!("database = [\"{url}\"]"),
        format!("[ledger]\nurls = \"{url}\""),
        format!("[events]\nenabled = \"{url}\""),
        format!("[submit]\nconcurrency = \"{url}\""),
        format!("[poll]\nhold_after = \"{url}\""),
        format!("listen = \"{url}\""),
        format!("log = \"{url}\""),
        format!("database: {url}"),
        url.to_owned(),
        "[ledger]\nurls = [\"http://u:Hid0den@h\", \"sEc1ret\"".to_owned(),
    ] {
        write_private(&file, &text);
        let mut command = GRID_BATCH.command(["config", "--config"]);
        command.arg(&file);
        let output = run(command);
        assert_ne!(output.exit_code, Some(0), "{text}");
        assert_no_part(&text, &output);
    }
    for arguments in [
        &["serve", url][..],
        &["serve", "--databse", url],
        &["serve", &format!("--databse={url}")],
        &["config", "--database", url, "surplus"],
        &["show", "x::y", url],
        &["hold", url, url],
        &["demo", "--json", "--database", "host=h password=Hid0den"],
        &[url],
    ] {
        assert_no_part(&format!("{arguments:?}"), &run(GRID_BATCH.command(arguments)));
    }
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn escaped_password_is_used_and_never_printed() {
    let database = TestDatabase::create();
    // The server of the tests trusts its users: it accepts any password.
    let url = format!("{}&password=Hid0den%40%2F%23sEc1ret", database.url());
    let harness = BatchHarness::scabbard(1).with_database(&url);
    let node = harness.ledger.url().replacen("http://", "http://u:Hid0den%40sEc1ret@", 1);
    let server = harness.serve_with(&[("--log", "trace"), ("--ledger-urls", &node)]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    assert_no_part("the log", &server.stop_with("TERM"));
    assert_no_part("the configuration", &harness.run_command(&["config"]));
}

#[test]
fn database_url_is_read_from_a_file() {
    let harness = BatchHarness::scabbard(1);
    let file = harness.path().join("database-url");
    let other = harness.path().join("other.db");
    write_private(&file, &format!("sqlite://{}\n", other.display()));
    let path = file.display().to_string();
    // A flag overrides the variable GRID_BATCH_DATABASE of the harness.
    harness.serve_with(&[("--database-file", &path)]).stop();
    assert!(other.exists() && !harness.database_file().exists());
}

#[test]
fn file_of_a_setting_that_cannot_be_read_is_named() {
    let mut command = GRID_BATCH.command(["config"]);
    command.env("GRID_BATCH_DATABASE_FILE", "/nowhere/url");
    let output = run(command);
    let message = output.error_message();
    let expected = "the variable GRID_BATCH_DATABASE_FILE: the file of database, /nowhere/url, \
                    cannot be read: No such";
    assert!(message.starts_with(expected), "{message}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("url");
    fs::write(&file, "sqlite://y").unwrap();
    let mut command = GRID_BATCH.command(["config"]);
    command.env("GRID_BATCH_DATABASE_FILE", &file).env("GRID_BATCH_DATABASE", "sqlite://x");
    let output = run(command);
    assert!(output.error_message().contains("give one of them"), "{output:?}");
}
