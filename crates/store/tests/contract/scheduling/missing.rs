//! Transactions that are in no batch. Their dependents have no position, so they stop no other batch.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, ChangeOutcome, Decision, NewBatch};
use grid_batch_core::evidence::MissingTransactionStore;
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, depending, numbers, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    batch_that_misses_a_transaction_stops_no_other,
    batch_gets_its_place_when_the_transaction_arrives,
    chain_of_missing_transactions_is_placed_in_order,
    transactions_of_another_service_are_awaited,
    ledger_that_has_the_transaction_frees_the_batch,
    ledger_is_asked_again_only_after_a_pause,
    batch_is_held_when_the_transaction_does_not_come,
    held_batch_continues_when_the_transaction_comes,
    hold_of_an_operator_outlasts_the_arrival,
    released_batch_is_sent_though_the_transaction_is_missing,
    decided_batch_misses_nothing_any_more,
    circle_of_dependencies_is_held,
    serial_service_is_not_stopped_by_a_missing_transaction,
}

const MINUTE: Duration = Duration::from_secs(60);

fn missing(store: &TestStore) -> Vec<grid_batch_core::ItemId> {
    store.worker_of_all().missing_transactions(Duration::ZERO, 10).unwrap()
}

/// A batch that depends on the first transaction of batch 1, which is missing.
fn dependent() -> NewBatch {
    depending(SERVICE, 2, "aa", &[transaction_of(1)])
}

fn batch_that_misses_a_transaction_stops_no_other(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent(), writing(3, "aa"), batch(SERVICE, 4)]);
    let taken = store.take_up_to(10);
    assert_eq!(numbers(&taken), [3], "the last one conflicts with everything that has a position");
    store.commit(&taken);
    assert_eq!(numbers(&store.take_up_to(10)), [4]);
}

fn batch_gets_its_place_when_the_transaction_arrives(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent(), writing(3, "aa")]);
    store.add_all(&[writing(1, "bb"), writing(4, "aa")]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [3, 1]);
    // It is behind batches that came before the transaction, because both write the same address.
    assert_eq!(store.commit_all_of(SERVICE), [4]);
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn chain_of_missing_transactions_is_placed_in_order(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending(SERVICE, 4, "dd", &[transaction_of(3)])]);
    store.add_all(&[depending(SERVICE, 3, "cc", &[transaction_of(2)])]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [0; 0]);
    store.add_all(&[writing(1, "aa")]);
    store.free_all();
    for number in 1..=4 {
        assert_eq!(store.commit_all_of(SERVICE), [number]);
    }
}

fn transactions_of_another_service_are_awaited(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    store.add_all(&[NewBatch { service_id: service("c::d"), ..writing(1, "aa") }]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [0; 0]);
    assert_eq!(store.commit_all_of("c::d"), [1]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn ledger_that_has_the_transaction_frees_the_batch(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent(), writing(3, "aa")]);
    assert_eq!(missing(&store), [transaction_of(1)]);
    let ready = store.found_at_ledger(&[transaction_of(1)]).unwrap();
    assert!(ready.is_empty(), "it conflicts with the other one: {ready:?}");
    assert_eq!(missing(&store), []);
    assert_eq!(store.commit_all_of(SERVICE), [3]);
    // It is evaluated again, and the transaction is still known to exist.
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn ledger_is_asked_again_only_after_a_pause(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    db.later(120);
    let ask = || store.worker_of_all().missing_transactions(MINUTE, 10).unwrap();
    assert_eq!((ask(), ask()), (vec![transaction_of(1)], Vec::new()));
    db.later(60);
    assert_eq!(ask(), [transaction_of(1)]);
}

fn batch_is_held_when_the_transaction_does_not_come(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    assert_eq!(store.hold_missing(MINUTE).unwrap(), 0);
    assert_eq!(store.hold_missing(Duration::ZERO).unwrap(), 1);
    assert_eq!(store.hold_missing(Duration::ZERO).unwrap(), 0, "it is held already");
    let [held] = store.waiting_holds().unwrap().try_into().unwrap();
    let reason = held.held.unwrap().reason;
    assert!(reason.starts_with("a transaction that it depends on has not arrived"), "{reason}");
}

fn held_batch_continues_when_the_transaction_comes(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    store.hold_missing(Duration::ZERO).unwrap();
    store.add_all(&[writing(1, "bb")]);
    store.free_all();
    assert_eq!(store.waiting_holds().unwrap(), []);
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![1], vec![2]));
}

fn hold_of_an_operator_outlasts_the_arrival(db: &Database) {
    for held_again in [false, true] {
        let db = db.another();
        let store = db.open_parallel();
        store.add_all(&[dependent()]);
        let hold = || store.hold_batch(&service(SERVICE), &id(2), "look first").unwrap();
        if !held_again {
            hold();
        }
        store.hold_missing(Duration::ZERO).unwrap();
        if held_again {
            hold();
        }
        store.add_all(&[writing(1, "bb")]);
        store.free_all();
        assert_eq!(store.commit_all_of(SERVICE), [1]);
        store.free_all();
        let [held] = store.held_batches(None, 9).unwrap().try_into().unwrap();
        assert_eq!(held.held.unwrap().reason, "held by an operator: look first");
    }
}

fn released_batch_is_sent_though_the_transaction_is_missing(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    store.hold_missing(Duration::ZERO).unwrap();
    let released = store.release_batch(&service(SERVICE), &id(2), Some("it is there")).unwrap();
    assert!(matches!(released, ChangeOutcome::Applied { .. }), "{released:?}");
    assert_eq!(missing(&store), []);
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn decided_batch_misses_nothing_any_more(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[dependent()]);
    store.add_all(&[depending("c::d", 3, "aa", &[transaction_of(2)])]);
    store.decide(&service(SERVICE), &id(2), 0, Decision::Invalid).unwrap();
    store.free_all();
    assert_eq!(missing(&store), [transaction_of(2)], "the ledger may have it from another batch");
    store.answer_absent();
    assert_eq!(store.one("c::d", 3).progress.state, BatchState::Invalid, "its dependency is");
}

fn circle_of_dependencies_is_held(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending(SERVICE, 1, "aa", &[transaction_of(2)]), dependent()]);
    store.free_all();
    assert_eq!(store.commit_all_of(SERVICE), [0; 0]);
    assert_eq!(store.hold_missing(Duration::ZERO).unwrap(), 2);
}

fn serial_service_is_not_stopped_by_a_missing_transaction(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Serial, 1);
    store.add_all(&[dependent(), writing(3, "bb")]);
    assert_eq!(store.commit_all_of(SERVICE), [3]);
    store.add_all(&[writing(1, "cc")]);
    store.free_all();
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![1], vec![2]));
}
