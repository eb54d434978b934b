use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{ClaimOptions, ClaimStore};

use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    submitted_batches_are_under_way_until_they_end,
    held_and_delayed_batches_are_not_under_way,
    batches_of_another_instance_are_not_counted,
}

/// The numbers of the batches that are under way.
fn under_way(store: &TestStore, of: std::ops::Range<u64>) -> Vec<u64> {
    let found = store.worker_of_all().under_way().unwrap();
    let mut numbers: Vec<u64> = of.filter(|n| found.iter().any(|(_, it)| *it == id(*n))).collect();
    assert_eq!(numbers.len(), found.len());
    numbers.sort_unstable();
    numbers
}

fn submitted_batches_are_under_way_until_they_end(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::a", 1), batch("a::a", 2), batch("b::b", 3), batch("c::c", 4)]);
    assert!(under_way(&store, 0..9).is_empty());
    let taken = store.take(&["a::a", "b::b"]);
    assert_eq!(under_way(&store, 0..9), [1, 3]);
    let found = store.worker().under_way().unwrap();
    assert!(found.contains(&(service("b::b"), id(3))));
    store.outcome(&taken[0], Outcome::Accepted);
    store.outcome(&taken[1], Outcome::Ambiguous);
    assert_eq!(under_way(&store, 0..9), [1, 3]);
    store.evidence(&taken[0], Evidence::Committed);
    assert_eq!(under_way(&store, 0..9), [3]);
}

fn held_and_delayed_batches_are_not_under_way(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::a", 1), batch("b::b", 2), batch("c::c", 3)]);
    let taken = store.take(&["a::a", "b::b", "c::c"]);
    store.outcome(&taken[0], Outcome::Busy);
    store.outcome(&taken[1], Outcome::Ambiguous);
    store.hold(&taken[1], "nothing is proved");
    assert_eq!(under_way(&store, 0..9), [3]);
    store.give_back(&taken[2..]).unwrap();
    assert!(under_way(&store, 0..9).is_empty());
}

fn batches_of_another_instance_are_not_counted(db: &Database) {
    if !db.is_postgres() {
        // An SQLite file allows only one instance.
        return;
    }
    let store = db.open();
    store.add_all(&[batch("a::a", 1)]);
    store.take_one("a::a");
    let options = ClaimOptions { name: Some("another".to_owned()), ..ClaimOptions::default() };
    let other = ClaimStore::register(db.open().into_store(), options).unwrap();
    assert!(other.under_way().unwrap().is_empty());
    assert_eq!(under_way(&store, 0..9), [1]);
}
