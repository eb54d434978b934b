//! Batches that are held in lanes of a parallel service. Only batches that conflict with them wait.

use std::sync::Arc;

use grid_batch_core::queue::StrategyKind;
use grid_batch_store::StoreOptions;

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    lane_of_a_held_batch_is_not_counted,
    lanes_of_batches_that_the_server_holds_are_not_counted,
    waiting_batches_that_are_held_leave_lanes_to_others,
    lanes_with_held_batches_have_a_limit,
    server_fills_lanes_after_a_hold_by_a_command,
    held_batch_of_a_serial_service_stops_all_behind_it,
}

/// Batches that do not conflict.
fn add(store: &TestStore, numbers: impl IntoIterator<Item = u64>) {
    let batches = numbers.into_iter().map(|number| writing(number, &format!("{number:04x}")));
    store.add_all(&batches.collect::<Vec<_>>());
}

fn hold(store: &TestStore, number: u64) {
    store.hold_batch(&service(SERVICE), &id(number), "a doubt").unwrap();
}

fn lane_of_a_held_batch_is_not_counted(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 2);
    add(&store, 1..=5);
    hold(&store, 1);
    hold(&store, 2);
    assert_eq!(numbers(&store.take_up_to(9)), [3, 4]);
    store.release_batch(&service(SERVICE), &id(1), None).unwrap();
    let released = store.take_up_to(9);
    assert_eq!(numbers(&released), [1], "one more than usual is under way");
    store.commit(&released);
    assert!(store.take_up_to(9).is_empty());
}

fn lanes_of_batches_that_the_server_holds_are_not_counted(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 2);
    add(&store, 1..=3);
    for taken in store.take_up_to(9) {
        store.outcome(&taken, grid_batch_core::ledger::Outcome::Ambiguous);
        store.hold(&taken, "no evidence");
    }
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
}

fn waiting_batches_that_are_held_leave_lanes_to_others(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 2);
    add(&store, 1..=8);
    (3..=6).for_each(|number| hold(&store, number));
    store.commit(&store.take_up_to(9));
    assert_eq!(numbers(&store.take_up_to(9)), [7, 8]);
    assert_eq!(store.held_batches(None, 9).unwrap().len(), 4);
}

fn lanes_with_held_batches_have_a_limit(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 1);
    add(&store, 1..=20);
    (1..=20).for_each(|number| hold(&store, number));
    assert!(store.take_up_to(9).is_empty());
    assert_eq!(db.number("select count(*) as number from lanes"), 11);
    store.release_batch(&service(SERVICE), &id(1), None).unwrap();
    assert_eq!(numbers(&store.take_up_to(9)), [1]);
}

/// An operator's command has no rules.
fn server_fills_lanes_after_a_hold_by_a_command(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 1);
    add(&store, 1..=2);
    let command = db.open_with(StoreOptions { scheduling: Arc::default(), ..db.options() });
    assert!(store.worker_of_all().store().locked_services().is_empty());
    hold(&command, 1);
    assert!(store.take_up_to(9).is_empty());
    store.free_all();
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
}

fn held_batch_of_a_serial_service_stops_all_behind_it(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Serial, 1);
    add(&store, 1..=3);
    hold(&store, 1);
    assert!(store.take_up_to(9).is_empty());
}
