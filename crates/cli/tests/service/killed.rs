//! The demonstration's program, killed and started again.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use grid_batch_ledger_sim::read_record;
use grid_batch_test_postgres::TestDatabase;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    program::{Ended, Program, grid_batch},
    until::until,
};

/// A demonstration whose things are kept.
struct Kept {
    dir: TempDir,
    database: Option<String>,
}

impl Kept {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), database: None }
    }

    fn place(&self) -> PathBuf {
        self.dir.path().join("kept")
    }

    fn start(&self, batches: usize, more: &[&str]) -> Program {
        let batches = batches.to_string();
        let place = self.place();
        let mut command = grid_batch(["demo", "--services", "5", "--batches", &batches]);
        command.arg("--keep").arg(place).args(more);
        if let Some(database) = &self.database {
            command.args(["--database", database]);
        }
        Program::start(command)
    }

    fn run(&self, batches: usize, more: &[&str]) -> Ended {
        self.start(batches, more).ended()
    }

    /// The audit of a run that must end clean.
    #[track_caller]
    fn clean(&self, batches: usize) -> Value {
        let ended = self.run(batches, &["--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    }

    fn record(&self) -> PathBuf {
        self.place().join("ledger.jsonl")
    }

    /// How much the ledger has done.
    fn applied(&self) -> usize {
        read_record(self.record()).map_or(0, |record| record.len())
    }
}

fn killed_again_and_again(kept: &Kept) {
    let killed_when = |at: usize| {
        let program = kept.start(120, &["--faults", "some"]);
        if at == 0 {
            program.until_it_logs("accepted");
        }
        until("the ledger has done enough", || kept.applied() >= at);
        program.kill();
    };
    [0, 60, 110].into_iter().for_each(killed_when);
    let audit = kept.clean(120);
    assert_eq!(audit["accepted"], 120, "{audit}");
    let more = kept.clean(20);
    assert_eq!(more["accepted"], 140, "{more}");
}

#[test]
fn a_demonstration_killed_again_and_again_ends_clean_and_goes_on_with_more() {
    killed_again_and_again(&Kept::new());
}

#[test]
fn a_demonstration_on_postgres_killed_again_and_again_ends_clean_and_goes_on_with_more() {
    let database = TestDatabase::create();
    killed_again_and_again(&Kept { database: Some(database.url().to_owned()), ..Kept::new() });
}

#[test]
fn what_was_kept_of_another_demonstration_is_left_alone() {
    let kept = Kept::new();
    kept.clean(10);
    let before = contents(&kept.place());
    let keep = kept.place();
    for (arguments, expected) in [
        (["--ledger", "sawtooth"], "other ledger: scabbard"),
        (["--services", "6"], "other services: 5"),
        (["--seed", "1"], "other seed: "),
    ] {
        let mut command = grid_batch(["demo", "--json"]);
        if arguments[0] == "--seed" {
            command.args(["--services", "5"]);
        }
        command.args(arguments).arg("--keep").arg(&keep);
        let ended = Ended::of(command);
        let failure = ended.failure();
        assert!(failure.contains(expected), "{failure}");
        assert!(failure.contains("go on with that, or keep it elsewhere"), "{failure}");
    }
    assert_eq!(contents(&kept.place()), before);
}

#[test]
fn two_demonstrations_do_not_share_what_is_kept() {
    let kept = Kept::new();
    let _first = kept.start(2_000, &[]);
    until("the ledger has done something", || kept.applied() > 0);
    let ended = kept.run(10, &["--json"]);
    let failure = ended.failure();
    assert!(failure.contains("is in use by another ledger"), "{failure}");
}

#[test]
fn a_record_that_was_tampered_with_is_not_clean() {
    let kept = Kept::new();
    kept.clean(10);
    apply_the_last_once_more(&kept.record());
    let ended = kept.run(5, &["--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let audit: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&audit["duplicated"], &audit["lost"]), (&1.into(), &0.into()), "{audit}");
}

fn apply_the_last_once_more(record: &Path) {
    let lines = fs::read_to_string(record).unwrap();
    let last = lines.lines().last().unwrap();
    let mut entry: Value = serde_json::from_str(last).unwrap();
    assert_eq!(entry["verdict"], "applied", "{entry}");
    entry["position"] = lines.lines().count().into();
    let mut file = OpenOptions::new().append(true).open(record).unwrap();
    writeln!(file, "{entry}").unwrap();
}

fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}
