//! A configuration that cannot be meant: one line that says what to do, and nothing is done.

use std::{fs, net::TcpListener, path::Path};

use crate::{
    bench::Bench,
    program::{Ended, grid_batch},
};

/// A start with this file fails, and says so.
#[track_caller]
fn failure_of(file: &Path, expected: &str) {
    let mut command = grid_batch(["serve", "--config"]);
    command.arg(file);
    let ended = Ended::of(command);
    let failure = ended.failure();
    assert!(failure.contains(expected), "{expected:?} is not in: {failure}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    failure_of(&file, &format!("the configuration {} cannot be read: No such", file.display()));
    failure_of(dir.path(), "cannot be read: Is a directory");
    fs::write(&file, b"listen = \"\xff\"").unwrap();
    failure_of(&file, "cannot be read: stream did not contain valid UTF-8");
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    for (text, expected) in [
        ("\n[poll]\ninterval = ", "line 3 of "),
        ("\n\nlisten", "this is no TOML"),
        ("[poll]\nintervall = \"1s\"", "line 2 of "),
        ("[poll]\nintervall = \"1s\"", "was poll.interval meant?"),
        ("[pol]\ninterval = \"1s\"", "there is no setting pol"),
        ("\nlisten = 80", "line 2 of "),
        ("listen = \"localhost\"", "such as \"127.0.0.1:8080\""),
        ("listen = \"0.0.0.0:80\"", "put a proxy that does in front"),
        ("database = \"mysql://h/d\"", "postgres:// or postgresql://"),
        ("database = \"sqlite://:memory:\"", "name a file"),
        ("[ledger]\nkind = \"fabric\"", "it must be \"sawtooth\", \"scabbard\" or \"evm\""),
        ("[queue]\nround = 0", "it must be a number from 1"),
        ("[queue]\nround = 1\nround = 2", "line 3 of "),
    ] {
        fs::write(&file, text).unwrap();
        failure_of(&file, expected);
    }
}

#[test]
fn what_is_wrong_in_the_environment_is_named() {
    for (name, value, expected) in [
        ("GRID_BATCH_LISTN", "127.0.0.1:0", "was GRID_BATCH_LISTEN meant?"),
        ("GRID_BATCH_POLL_INTERVAL", "often", "the variable GRID_BATCH_POLL_INTERVAL: "),
        ("GRID_BATCH_CONFIG", "/nowhere.toml", "the configuration /nowhere.toml cannot be read"),
    ] {
        let mut command = grid_batch(["serve"]);
        command.env(name, value);
        let ended = Ended::of(command);
        let failure = ended.failure();
        assert!(failure.contains(expected), "{name}: {failure}");
    }
}

#[test]
fn a_flag_with_a_bad_value_is_named() {
    let ended = Ended::of(grid_batch(["serve", "--queue-round", "many"]));
    let failure = ended.failure();
    assert_eq!(
        failure,
        "the flag --queue-round: queue.round is \"many\"; it must be a number from 1 to \
         18446744073709551615"
    );
}

#[test]
fn what_must_be_set_is_named() {
    for (arguments, expected) in [
        (
            &["serve"][..],
            "ledger.kind is not set; it must be \"sawtooth\", \"scabbard\" or \"evm\"",
        ),
        (&["serve", "--ledger-kind", "sawtooth"], "ledger.urls is not set"),
        (
            &["serve", "--ledger-kind", "scabbard", "--ledger-urls", "http://a"],
            "ledger.key_file is not set",
        ),
    ] {
        let ended = Ended::of(grid_batch(arguments));
        let failure = ended.failure();
        assert!(failure.contains(expected), "{failure}");
    }
}

#[test]
fn a_key_file_that_is_missing_or_bad_is_named_and_its_text_is_not() {
    let bench = Bench::scabbard(1);
    let key = bench.path().join("other-key");
    let place = key.display().to_string();
    let failure = |key: &str| {
        let flags = [("--log", "error"), ("--ledger-key-file", key)];
        Ended::of(bench.command(&flags)).failure().to_owned()
    };
    assert!(failure(&place).contains(&format!("the key file {place} cannot be used: No such")));
    for text in ["", "hidden", &"zz".repeat(32), &"00".repeat(32), &"07".repeat(33)] {
        fs::write(&key, text).unwrap();
        let failure = failure(&place);
        assert!(
            failure.starts_with(&format!("the key file {place} cannot be used: ")),
            "{failure}"
        );
        assert!(text.is_empty() || !failure.contains(text), "{failure}");
    }
    assert!(
        !bench.database_file().exists(),
        "a database was made for a service that did not start"
    );
}

#[test]
fn a_port_that_is_taken_is_named_and_no_database_is_made() {
    let bench = Bench::scabbard(1);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let ended = Ended::of(bench.command(&[("--log", "error"), ("--listen", &address)]));
    let failure = ended.failure();
    assert!(failure.contains(&format!("cannot listen on {address}: Address already in use")));
    assert!(!bench.database_file().exists());
}
