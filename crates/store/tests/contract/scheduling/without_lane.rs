//! What operators see of batches that are in no lane, and of services without a batch in a lane.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_core::queries::{BatchFilter, PageCursor};
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, depending, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    services_without_busy_lanes_are_open,
    batch_held_for_a_missing_transaction_is_counted,
    new_batches_older_than_all_lanes_are_listed,
    new_batches_are_counted_once,
    open_batches_without_lanes_are_read,
    batches_that_end_unsent_are_counted,
    batches_that_an_operator_ends_are_counted,
}

const OTHER: &str = "c::d";

/// Batches that miss a transaction.
fn add_incomplete(store: &TestStore, name: &str, numbers: &[u64]) {
    let missing = |number: &u64| depending(name, *number, "aa", &[transaction_of(number + 900)]);
    store.add_all(&numbers.iter().map(missing).collect::<Vec<_>>());
}

fn services_without_busy_lanes_are_open(db: &Database) {
    let store = db.open_parallel();
    add_incomplete(&store, SERVICE, &[1, 2]);
    add_incomplete(&store, OTHER, &[3]);
    let counts = store.service_counts().unwrap();
    assert_eq!((counts.open, counts.held), (2, 0));
    store.add_all(&[writing(4, "aa"), writing(5, "aa")]);
    assert_eq!(store.service_counts().unwrap().open, 2);
}

fn batch_held_for_a_missing_transaction_is_counted(db: &Database) {
    let store = db.open_parallel();
    add_incomplete(&store, SERVICE, &[1, 2]);
    db.later(60);
    assert_eq!(store.hold_missing(Duration::from_secs(60)).unwrap(), 2);
    let counts = store.service_counts().unwrap();
    assert_eq!((counts.open, counts.held), (1, 1));
}

fn list_new(store: &TestStore, page: usize) -> Vec<grid_batch_core::ItemId> {
    let filter = BatchFilter { state: Some(BatchState::New), ..BatchFilter::default() };
    let mut ids = Vec::new();
    let mut after: Option<PageCursor> = None;
    loop {
        let batches = store.list(&filter, after.as_ref(), page).unwrap();
        let Some(last) = batches.last() else { return ids };
        after = Some(PageCursor::after(last));
        ids.extend(batches.into_iter().map(|batch| batch.batch_id));
    }
}

/// Services with batches in lanes, behind them and before them.
fn add_mixed(store: &TestStore) -> Vec<grid_batch_core::ItemId> {
    add_incomplete(store, SERVICE, &[1, 2]);
    store.add_all(&[writing(3, "aa"), writing(4, "aa"), writing(5, "bb")]);
    add_incomplete(store, SERVICE, &[6]);
    add_incomplete(store, OTHER, &[7, 8]);
    (1..=8).map(id).collect()
}

fn new_batches_older_than_all_lanes_are_listed(db: &Database) {
    let store = db.open_parallel();
    let all = add_mixed(&store);
    for page in [1, 2, 3, 100] {
        assert_eq!(list_new(&store, page), all, "pages of {page}");
    }
    let of_service = BatchFilter { state: Some(BatchState::New), service_id: Some(service(OTHER)) };
    assert_eq!(store.list(&of_service, None, 9).unwrap().len(), 2);
}

fn new_batches_are_counted_once(db: &Database) {
    let store = db.open_parallel();
    add_mixed(&store);
    let count = |service_id| {
        store.count(&BatchFilter { state: Some(BatchState::New), service_id }).unwrap()
    };
    assert_eq!([None, Some(SERVICE), Some(OTHER)].map(|it| count(it.map(service))), [8, 6, 2]);
    store.commit(&store.take_up_to(9));
    assert_eq!(count(None), 6);
}

fn open_batches_without_lanes_are_read(db: &Database) {
    let store = db.open_parallel();
    add_mixed(&store);
    let open = |name: &str| -> Vec<_> {
        let open = store.open_batches(&service(name), 9).unwrap();
        open.into_iter().map(|batch| batch.batch_id).collect()
    };
    assert_eq!(open(SERVICE), (1..=6).map(id).collect::<Vec<_>>());
    assert_eq!(open(OTHER), [7, 8].map(id));
}

fn batches_that_end_unsent_are_counted(db: &Database) {
    let store = db.open_halting(StrategyKind::Serial);
    store.add_all(&[1, 2, 3].map(|number| writing(number, "aa")));
    store.commit(&store.take_up_to(9));
    assert_eq!(store.take_ended_waiting().len(), 0);
    store.decide(&service(SERVICE), &id(2), 0, Decision::Invalid).unwrap();
    assert_eq!(store.take_ended_waiting().len(), 0, "an operator decided about this one");
    store.end_following(&service(SERVICE), &id(2), "a reason").unwrap();
    store.free_all();
    assert_eq!(store.one(SERVICE, 3).progress.state, BatchState::Invalid);
    assert_eq!(store.take_ended_waiting(), [(id(3), BatchState::Invalid)]);
    assert_eq!(store.take_ended_waiting().len(), 0, "each is counted once");
}

fn batches_that_an_operator_ends_are_counted(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[1, 2, 3, 4].map(|number| writing(number, "aa")));
    store.end(&store.take_up_to(9)[0], grid_batch_core::batches::LedgerStatus::Invalid);
    store.end_following(&service(SERVICE), &id(1), "a reason").unwrap();
    store.free_all();
    assert_eq!(store.take_ended_waiting().len(), 3);
}
