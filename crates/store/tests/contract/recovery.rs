use grid_batch_core::batches::{BatchState, ChangeOutcome};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    orphaned_batch_is_in_doubt_after_restart,
    restarts_between_batches_lose_nothing,
    many_orphans_are_recovered_in_steps,
    orphan_behind_many_other_services_is_found,
    only_the_named_attempts_are_recovered,
}

fn orphaned_batch_is_in_doubt_after_restart(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2), batch("a::b", 3)]);
    let orphan = store.take_one("a::b");
    drop(store);

    let store = db.open();
    assert_eq!(store.recover().unwrap(), 1);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::InDoubt);
    assert_eq!(store.one("c::d", 2).progress.state, BatchState::New);
    assert!(store.take(&["a::b"]).is_empty());
    assert_eq!(store.recover().unwrap(), 0);

    // The outcome arrives too late.
    assert!(matches!(store.outcome(&orphan, Outcome::NotSent), ChangeOutcome::Stale(_)));
    let details = store.details(&service("a::b"), &id(1)).unwrap().unwrap();
    assert_eq!(details.failed_attempts[0].outcome, "owner lost");
}

fn restarts_between_batches_lose_nothing(db: &Database) {
    let numbers: Vec<u64> = (0..6).collect();
    db.open().add_all(&numbers.iter().map(|n| batch("a::b", *n)).collect::<Vec<_>>());
    let mut committed = Vec::new();
    for _ in &numbers {
        committed.push(db.open().commit_next("a::b"));
    }
    assert_eq!(committed, numbers.into_iter().map(id).collect::<Vec<_>>());
    assert_eq!(db.open().depth(&service("a::b")).unwrap(), 0);
}

fn many_orphans_are_recovered_in_steps(db: &Database) {
    let store = db.open();
    let names: Vec<String> = (0..1_203).map(|number| format!("s::{number:04}")).collect();
    let all: Vec<_> = (0..).zip(&names).map(|(number, name)| batch(name, number)).collect();
    store.add_all(&all);
    let some: Vec<&str> = names.iter().step_by(2).map(String::as_str).collect();
    assert_eq!(store.take(&some).len(), some.len());
    assert_eq!(store.recover().unwrap(), some.len());
}

fn orphan_behind_many_other_services_is_found(db: &Database) {
    let store = db.open();
    let all: Vec<_> = (0..1_100).map(|n| batch(&format!("s::{n:04}"), n)).collect();
    store.add_all(&all);
    store.take_one("s::1099");
    assert_eq!(store.recover().unwrap(), 1);
    assert_eq!(store.one("s::1099", 1_099).progress.state, BatchState::InDoubt);
}

fn only_the_named_attempts_are_recovered(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2), batch("e::f", 3)]);
    let given_back = store.take_one("a::b");
    store.take_one("c::d");
    let worker = store.worker_of_all();
    let seen = worker.with_submitter().unwrap();
    assert_eq!(seen.len(), 2);
    store.take_one("e::f");
    // The first one ends, and its next attempt begins.
    assert!(matches!(store.outcome(&given_back, Outcome::NotSent), ChangeOutcome::Applied { .. }));
    db.later(3_600);
    store.take_one("a::b");

    assert_eq!(worker.recover(&seen).unwrap(), seen[1..]);
    let states = [("a::b", 1), ("c::d", 2), ("e::f", 3)]
        .map(|(service, number)| store.one(service, number).progress.state);
    assert_eq!(states, [BatchState::Submitting, BatchState::InDoubt, BatchState::Submitting]);
}
