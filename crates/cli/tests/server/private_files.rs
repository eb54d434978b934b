//! Files with batches and secrets belong to the server's user alone.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use grid_batch_test_support::{batches::signed_batches, process::with_shell_setup};

use crate::harness::{BatchHarness, BatchServer};

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

/// The database file and those beside it.
fn database_files(harness: &BatchHarness) -> Vec<PathBuf> {
    let name = harness.database_file().display().to_string();
    ["", "-wal", "-shm", ".lock"].iter().map(|suffix| format!("{name}{suffix}").into()).collect()
}

/// Starts a server, stops it and returns its log.
fn log_of_a_run(harness: &BatchHarness, flags: &[(&str, &str)]) -> String {
    harness.serve_with(flags).stop_with("TERM").stderr
}

#[test]
fn database_files_are_private_whatever_the_umask() {
    let harness = BatchHarness::scabbard(1);
    let command = with_shell_setup("umask 000", harness.command(&[]));
    let server = BatchServer::start(command);
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    for file in database_files(&harness) {
        assert_eq!(mode(&file), 0o600, "{} is {:o}", file.display(), mode(&file));
    }
    server.stop();
}

#[test]
fn readable_database_file_is_warned_of_once() {
    let harness = BatchHarness::scabbard(1);
    log_of_a_run(&harness, &[]);
    set_mode(&harness.database_file(), 0o644);
    let log = log_of_a_run(&harness, &[]);
    let warning = format!("file={} ", harness.database_file().display());
    let warned = || log.lines().filter(|line| line.contains("other users can read"));
    assert_eq!(warned().count(), 1, "{log}");
    assert!(warned().all(|line| line.contains(warning.trim_end())), "{log}");
    assert_eq!(mode(&harness.database_file()), 0o644);
}

#[test]
fn readable_configuration_with_a_secret_is_warned_of() {
    let harness = BatchHarness::scabbard(1);
    let file = harness.path().join("fast.toml");
    let text = fs::read_to_string(&file).unwrap();
    set_mode(&file, 0o644);
    let log = log_of_a_run(&harness, &[]);
    assert!(!log.contains("other users can read"), "{log}");

    let with_secret = format!("{text}\n[evm]\noracle_url = \"https://h/gas?apikey=hidden\"\n");
    fs::write(&file, &with_secret).unwrap();
    let log = log_of_a_run(&harness, &[]);
    assert!(log.contains("other users can read the configuration file"), "{log}");
    assert!(!log.contains("hidden"), "{log}");
    set_mode(&file, 0o600);
    let log = log_of_a_run(&harness, &[]);
    assert!(!log.contains("other users can read"), "{log}");
}

#[test]
fn secret_in_a_flag_is_warned_of() {
    let harness = BatchHarness::scabbard(1);
    let flags = [("--evm-oracle-url", "https://h/gas?apikey=hidden")];
    let log = log_of_a_run(&harness, &flags);
    assert!(log.contains("every user of this machine can read the flag"), "{log}");
    assert!(log.contains("--evm-oracle-url-file") && !log.contains("hidden"), "{log}");
}

#[test]
fn readable_file_of_a_setting_is_warned_of() {
    let harness = BatchHarness::scabbard(1);
    let file = harness.path().join("oracle");
    fs::write(&file, "https://h/gas?apikey=hidden\n").unwrap();
    set_mode(&file, 0o640);
    let flag = file.display().to_string();
    let log = log_of_a_run(&harness, &[("--evm-oracle-url-file", &flag)]);
    assert!(log.contains("other users can read the file of a setting"), "{log}");
    assert!(log.contains(&flag) && !log.contains("hidden"), "{log}");
}
