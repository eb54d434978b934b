//! The lengths of addresses that are in use: at most eight per service.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    used_up_lengths_are_free_when_no_batch_is_open,
    used_up_lengths_stay_while_a_batch_has_rows,
    used_up_lengths_stay_while_an_invalid_batch_stops_others,
}

/// Adds batches that declare addresses of eight lengths.
fn use_up(store: &TestStore) {
    let all = (1..=8).map(|number| writing(number, &"c".repeat(2 * number as usize)));
    store.add_all(&all.collect::<Vec<_>>());
}

fn stored(db: &Database) -> i64 {
    db.number("select count(*) as number from address_lengths")
}

fn used_up_lengths_are_free_when_no_batch_is_open(db: &Database) {
    let store = db.open_parallel();
    use_up(&store);
    assert_eq!(stored(db), 8);
    (1..=8).for_each(|number| assert_eq!(store.commit_all_of(SERVICE), [number]));
    assert_eq!((stored(db), db.scheduling_rows()), (0, 0));
    let new = ["01", "02"].map(|last| "a".repeat(20) + last);
    store.add_all(&[writing(11, &new[0]), writing(12, &new[1]), writing(13, &new[0])]);
    assert_eq!(
        numbers(&store.take_up_to(9)),
        [11, 12],
        "addresses of a new length are distinguished"
    );
    assert_eq!(stored(db), 1);
}

fn used_up_lengths_stay_while_a_batch_has_rows(db: &Database) {
    let store = db.open_parallel();
    use_up(&store);
    store.add_all(&[writing(9, "dd")]);
    let taken = store.take_up_to(9);
    assert_eq!(numbers(&taken), [1, 9]);
    store.commit(&taken[..1]);
    (2..=8).for_each(|number| assert_eq!(store.commit_all_of(SERVICE), [number]));
    assert_eq!(stored(db), 8);
    store.commit(&taken[1..]);
    assert_eq!((stored(db), db.scheduling_rows()), (0, 0));
}

fn used_up_lengths_stay_while_an_invalid_batch_stops_others(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    use_up(&store);
    (1..=7).for_each(|number| assert_eq!(store.commit_all_of(SERVICE), [number]));
    store.end(&store.take_up_to(9)[0], LedgerStatus::Invalid);
    assert_eq!(stored(db), 8);
    store.continue_after(&service(SERVICE), &id(8), Some("a reason")).unwrap();
    assert_eq!((stored(db), db.scheduling_rows()), (0, 0));
}
