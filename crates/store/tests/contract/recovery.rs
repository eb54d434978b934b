use grid_batch_core::{BatchState, ChangeOutcome, Outcome};

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    orphaned_batch_is_in_doubt_after_restart,
    restarts_between_batches_lose_nothing,
    many_orphans_are_recovered_in_steps,
    orphan_behind_many_other_services_is_found,
    recently_taken_batch_is_not_recovered,
}

fn orphaned_batch_is_in_doubt_after_restart(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2), batch("a::b", 3)]);
    let orphan = store.take_one("a::b");
    drop(store);

    let store = db.open();
    assert_eq!(store.recover(db.now()).unwrap(), 1);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::InDoubt);
    assert_eq!(store.one("c::d", 2).progress.state, BatchState::New);
    assert!(store.take(&["a::b"]).is_empty());
    assert_eq!(store.recover(db.now()).unwrap(), 0);

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
    assert_eq!(store.recover(db.now()).unwrap(), some.len());
}

fn orphan_behind_many_other_services_is_found(db: &Database) {
    let store = db.open();
    let all: Vec<_> = (0..1_100).map(|n| batch(&format!("s::{n:04}"), n)).collect();
    store.add_all(&all);
    store.take_one("s::1099");
    assert_eq!(store.recover(db.now()).unwrap(), 1);
    assert_eq!(store.one("s::1099", 1_099).progress.state, BatchState::InDoubt);
}

fn recently_taken_batch_is_not_recovered(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    store.take_one("a::b");
    let then = db.now();
    db.later(60);
    store.take_one("c::d");
    assert_eq!(store.recover(then).unwrap(), 1);
    assert_eq!(store.one("a::b", 1).progress.state, BatchState::InDoubt);
    assert_eq!(store.one("c::d", 2).progress.state, BatchState::Submitting);
}
