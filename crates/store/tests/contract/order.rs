use std::time::Duration;

use grid_batch_core::Timestamp;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    batches_are_taken_in_the_order_they_were_added,
    stopped_clock_gives_increasing_created_at,
    clock_going_back_does_not_change_the_order,
    order_does_not_depend_on_ids,
    order_is_kept_across_restarts,
}

fn batches_are_taken_in_the_order_they_were_added(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 5), batch("a::b", 3)]);
    db.later(1);
    store.add_all(&[batch("a::b", 4), batch("c::d", 9), batch("a::b", 1)]);
    let order: Vec<_> = (0..4).map(|_| store.commit_next("a::b")).collect();
    assert_eq!(order, [id(5), id(3), id(4), id(1)]);
    assert!(store.take(&["a::b"]).is_empty());
    assert_eq!(store.commit_next("c::d"), id(9));
}

fn stopped_clock_gives_increasing_created_at(db: &Database) {
    let store = db.open();
    for first in [10, 20, 30] {
        store.add_all(&[batch("a::b", first), batch("a::b", first + 1)]);
    }
    let times: Vec<Timestamp> = store
        .open_batches(&service("a::b"), 10)
        .unwrap()
        .iter()
        .map(|batch| batch.created_at)
        .collect();
    let expected: Vec<Timestamp> =
        (0..6).map(|after| db.now().plus(Duration::from_micros(after))).collect();
    assert_eq!(times, expected);
}

fn clock_going_back_does_not_change_the_order(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 2)]);
    db.clock.set(Timestamp::from_micros(5));
    store.add_all(&[batch("a::b", 1)]);
    assert!(store.one("a::b", 2).created_at < store.one("a::b", 1).created_at);
    assert_eq!(store.commit_next("a::b"), id(2));
    assert_eq!(store.commit_next("a::b"), id(1));
}

fn order_does_not_depend_on_ids(db: &Database) {
    let store = db.open();
    let numbers = [u64::MAX, 0, 1 << 63, 255, 256];
    store.add_all(&numbers.map(|number| batch("a::b", number)));
    assert_eq!(numbers.map(|_| store.commit_next("a::b")), numbers.map(id));
}

fn order_is_kept_across_restarts(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 3), batch("a::b", 2)]);
    drop(store);
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    assert_eq!([(); 3].map(|()| store.commit_next("a::b")), [id(3), id(2), id(1)]);
}
