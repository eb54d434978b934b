//! The command `demo --keep`, killed and started again.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use grid_batch_ledger_sim::read_record;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    process::{ProcessOutput, TestProcess, run},
    wait::wait_until,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::GRID_BATCH;

/// A directory for `demo --keep`, and a database if it is not in the directory.
struct KeptDemo {
    parent: TempDir,
    database: Option<String>,
}

impl KeptDemo {
    fn new() -> Self {
        Self { parent: tempfile::tempdir().unwrap(), database: None }
    }

    fn directory(&self) -> PathBuf {
        self.parent.path().join("kept")
    }

    fn start(&self, batches: usize, arguments: &[&str]) -> TestProcess {
        let batches = batches.to_string();
        let directory = self.directory();
        let mut command = GRID_BATCH.command(["demo", "--services", "5", "--batches", &batches]);
        command.arg("--keep").arg(directory).args(arguments);
        if let Some(database) = &self.database {
            command.args(["--database", database]);
        }
        TestProcess::spawn(command)
    }

    fn run(&self, batches: usize, arguments: &[&str]) -> ProcessOutput {
        self.start(batches, arguments).wait()
    }

    /// Runs the demonstration, asserts that it ends clean, and returns its audit.
    #[track_caller]
    fn run_clean(&self, batches: usize) -> Value {
        let output = self.run(batches, &["--json"]);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    fn record(&self) -> PathBuf {
        self.directory().join("ledger.jsonl")
    }

    /// How many entries the ledger has recorded.
    fn recorded(&self) -> usize {
        read_record(self.record()).map_or(0, |record| record.len())
    }
}

fn kill_repeatedly(kept: &KeptDemo) {
    let kill_at = |entries: usize| {
        let process = kept.start(120, &["--faults", "some"]);
        if entries == 0 {
            process.wait_for_log("accepted");
        }
        wait_until("the ledger has enough entries", || kept.recorded() >= entries);
        process.kill();
    };
    [0, 60, 110].into_iter().for_each(kill_at);
    let audit = kept.run_clean(120);
    assert_eq!(audit["accepted"], 120, "{audit}");
    let more = kept.run_clean(20);
    assert_eq!(more["accepted"], 140, "{more}");
}

#[test]
fn killed_demo_ends_clean_and_takes_more_batches() {
    kill_repeatedly(&KeptDemo::new());
}

#[test]
fn killed_demo_on_postgres_ends_clean() {
    let database = TestDatabase::create();
    kill_repeatedly(&KeptDemo { database: Some(database.url().to_owned()), ..KeptDemo::new() });
}

#[test]
fn directory_of_another_demo_is_not_changed() {
    let kept = KeptDemo::new();
    kept.run_clean(10);
    let before = files_with_contents(&kept.directory());
    let keep = kept.directory();
    for (arguments, expected) in [
        (["--ledger", "sawtooth"], "another ledger: scabbard"),
        (["--services", "6"], "another number of services: 5"),
        (["--seed", "1"], "another seed: "),
    ] {
        let mut command = GRID_BATCH.command(["demo", "--json"]);
        if arguments[0] == "--seed" {
            command.args(["--services", "5"]);
        }
        command.args(arguments).arg("--keep").arg(&keep);
        let output = run(command);
        let message = output.error_message();
        assert!(message.contains(expected), "{message}");
        assert!(
            message.contains("continue with that, or keep this one in another directory"),
            "{message}"
        );
    }
    assert_eq!(files_with_contents(&kept.directory()), before);
}

#[test]
fn two_demos_cannot_share_a_directory() {
    let kept = KeptDemo::new();
    let _first = kept.start(2_000, &[]);
    wait_until("the ledger has an entry", || kept.recorded() > 0);
    let output = kept.run(10, &["--json"]);
    let message = output.error_message();
    assert!(message.contains("is in use by another ledger"), "{message}");
}

#[test]
fn duplicated_record_entry_fails_the_audit() {
    let kept = KeptDemo::new();
    kept.run_clean(10);
    duplicate_last_entry(&kept.record());
    let output = kept.run(5, &["--json"]);
    assert_eq!(output.exit_code, Some(1), "{output:?}");
    let audit: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&audit["duplicated"], &audit["lost"]), (&1.into(), &0.into()), "{audit}");
}

fn duplicate_last_entry(record: &Path) {
    let lines = fs::read_to_string(record).unwrap();
    let last = lines.lines().last().unwrap();
    let mut entry: Value = serde_json::from_str(last).unwrap();
    assert_eq!(entry["result"], "applied", "{entry}");
    entry["position"] = lines.lines().count().into();
    let mut file = OpenOptions::new().append(true).open(record).unwrap();
    writeln!(file, "{entry}").unwrap();
}

fn files_with_contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}
