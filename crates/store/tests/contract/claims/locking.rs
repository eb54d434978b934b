//! Only one process at a time may claim services in an SQLite file.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use grid_batch_core::batches::{BatchState, ChangeOutcome};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch};

fn register(db: &Database) -> Result<ClaimStore, StoreError> {
    ClaimStore::register(db.open().into_store(), ClaimOptions::default())
}

fn is_in_use(tried: Result<ClaimStore, StoreError>) -> bool {
    matches!(tried, Err(StoreError::Claims(ClaimError::FileInUse { .. })))
}

#[test]
fn second_instance_on_a_file_is_refused_naming_the_file() {
    let db = Database::sqlite();
    let first = register(&db).unwrap();
    let clone = first.clone();
    drop(first);
    let error = register(&db).unwrap_err().to_string();
    assert!(error.contains("batches.db") && error.contains("another process"), "{error}");
    assert!(clone.renew().unwrap(), "a refused registration does not affect the first instance");
    drop(clone);
    register(&db).unwrap();
}

#[test]
fn symlink_to_the_file_uses_the_same_lock() {
    let db = Database::sqlite();
    let _first = register(&db).unwrap();
    let link = db.file().with_file_name("link.db");
    symlink(db.file(), &link).unwrap();
    let url = format!("sqlite://{}", link.display()).parse().unwrap();
    let store = Store::open(&url, db.options()).unwrap();
    assert!(is_in_use(ClaimStore::register(store, ClaimOptions::default())));
}

#[test]
fn reading_and_adding_need_no_lock() {
    let db = Database::sqlite();
    let instance = register(&db).unwrap();
    db.open().add_all(&[batch("a::b", 1)]);
    assert_eq!(instance.take_all(), ["a::b"]);
    assert_eq!(db.state("a::b", 1), BatchState::New);
}

#[test]
fn restart_takes_over_all_services_at_once() {
    let db = Database::sqlite();
    let before = register(&db).unwrap();
    before.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    before.take_all();
    let sent = before.take_batch("a::1");
    let store = before.store().clone();
    drop(before);

    let after = register(&db).unwrap();
    let takeover = after.take(9).unwrap();
    assert_eq!((takeover.claims.len(), takeover.in_doubt.len()), (2, 1));
    assert!(matches!(store.outcome(&sent, Outcome::NotSent), ChangeOutcome::Stale(_)));
    assert_eq!(db.number("select count(*) as number from instances"), 1);
}

#[test]
fn unusable_lock_file_error_names_the_file() {
    let db = Database::sqlite();
    let store = db.open();
    std::fs::create_dir(db.file().with_extension("db.lock")).unwrap();
    let error = ClaimStore::register(store.into_store(), ClaimOptions::default()).unwrap_err();
    assert!(matches!(error, StoreError::LockFile { .. }));
    assert!(error.to_string().contains("batches.db.lock"), "{error}");
}

const HELD_FILE: &str = "GRID_BATCH_TEST_HELD_FILE";

#[test]
fn killed_process_leaves_no_lock() {
    if let Some(file) = env::var_os(HELD_FILE) {
        hold(&file.into_string().unwrap());
    }
    let db = Database::sqlite();
    drop(db.open());
    let mut other = Command::new(env::current_exe().unwrap())
        .args(["--exact", "claims::locking::killed_process_leaves_no_lock", "--nocapture"])
        .env(HELD_FILE, db.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(output.map_while(Result::ok).any(|line| line.contains("held")));

    assert!(is_in_use(register(&db)));
    other.kill().unwrap();
    other.wait().unwrap();
    register(&db).unwrap();
}

/// Runs in the other process, and holds the file until the process is killed or its parent ends.
fn hold(file: &str) -> ! {
    let store = Store::open(&format!("sqlite://{file}").parse().unwrap(), Default::default());
    let _instance = ClaimStore::register(store.unwrap(), ClaimOptions::default()).unwrap();
    println!("held");
    std::io::stdout().flush().unwrap();
    std::io::stdin().lines().for_each(drop);
    std::process::exit(0)
}
