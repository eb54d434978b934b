//! Dependencies on invalid batches. The ledger is asked whether it has the transaction from another batch.

use std::time::Duration;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, LedgerStatus, NewBatch, Stale,
};
use grid_batch_core::evidence::MissingTransactionStore;
use grid_batch_core::queries::{BatchQueryStore, WaitReason};
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, depending, numbers, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, by_program, id, on_both, service};

on_both! {
    dependent_of_an_invalid_batch_waits_for_the_ledger,
    transaction_that_the_ledger_has_satisfies_the_dependent,
    transaction_that_the_ledger_lacks_ends_the_dependent,
    answer_from_before_the_invalid_end_does_not_count,
    answer_about_an_earlier_invalid_batch_does_not_count,
    new_dependent_of_an_invalid_batch_stops_no_other,
    new_dependent_continues_when_the_ledger_has_it,
    new_dependent_waits_for_the_transaction_sent_again,
    transaction_sent_again_behind_the_dependent_does_not_help,
    halted_dependency_waits_for_the_operator_first,
    dependent_ends_with_what_an_operator_ends,
    batch_that_was_committed_late_satisfies_its_dependents,
    unanswered_batch_is_held_and_its_end_ends_the_hold,
    released_batch_is_sent_without_an_answer,
    decided_batch_is_not_asked_about_any_more,
    all_of_many_dependents_end,
    dependent_behind_says_that_the_ledger_is_asked,
    batch_of_the_same_commit_is_not_overtaken,
    dependency_of_the_same_moment_is_found_by_the_question,
    restored_batch_that_ends_may_have_been_sent,
}

fn ask(store: &TestStore) -> Vec<ItemId> {
    store.worker_of_all().missing_transactions(Duration::ZERO, 100).unwrap()
}

/// The first batch is invalid. The second one depends on it and writes the same address as the third one.
fn invalid_with_dependent(store: &TestStore) {
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "bb")]);
    store.end(&store.take_up_to(10)[0], LedgerStatus::Invalid);
    store.free_all();
}

/// A new batch with the transactions of another one.
fn again(of: u64, number: u64, address: &str) -> NewBatch {
    NewBatch { transaction_ids: writing(of, "aa").transaction_ids, ..writing(number, address) }
}

fn state(store: &TestStore, number: u64) -> BatchState {
    store.one(SERVICE, number).progress.state
}

fn dependent_of_an_invalid_batch_waits_for_the_ledger(db: &Database) {
    for strategy in StrategyKind::ALL {
        let db = db.another();
        let store =
            db.open_scheduled(strategy, if strategy == StrategyKind::Serial { 1 } else { 9 });
        invalid_with_dependent(&store);
        store.free_all();
        assert_eq!(numbers(&store.take_up_to(10)), [0; 0], "{strategy:?}");
        assert_eq!(state(&store, 2), BatchState::New, "{strategy:?}");
        assert_eq!(ask(&store), [transaction_of(1)]);
    }
}

fn transaction_that_the_ledger_has_satisfies_the_dependent(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    let ready = store.found_at_ledger(&ask(&store)).unwrap();
    assert!(ready.contains(&service(SERVICE)), "{ready:?}");
    assert_eq!(ask(&store), []);
    assert_eq!(store.commit_all_of(SERVICE), [2], "it has kept its position");
    assert_eq!(store.commit_all_of(SERVICE), [3]);
    assert_eq!(db.scheduling_rows(), 0);
}

fn transaction_that_the_ledger_lacks_ends_the_dependent(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    let ended = store.absent_at_ledger(&ask(&store)).unwrap();
    assert_eq!(ended.ended, 1);
    assert!(ended.ready.contains(&service(SERVICE)), "the next one is free: {ended:?}");
    let dependent = store.one(SERVICE, 2);
    assert_eq!((dependent.progress.state, dependent.progress.attempts), (BatchState::Invalid, 0));
    let error = dependent.last_error.unwrap();
    assert!(error.contains("the ledger does not have the transaction"), "{error}");
    assert_eq!((ask(&store), store.commit_all_of(SERVICE)), (Vec::new(), vec![3]));
    assert_eq!(db.number("select count(*) as number from missing_transactions"), 0);
}

fn answer_from_before_the_invalid_end_does_not_count(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    assert_eq!(ask(&store), [transaction_of(1)]);
    store.add_all(&[writing(1, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    store.free_all();
    let late = store.absent_at_ledger(&[transaction_of(1)]).unwrap();
    assert_eq!((late.ended, state(&store, 2)), (0, BatchState::New));
    assert_eq!(store.absent_at_ledger(&ask(&store)).unwrap().ended, 1);
}

/// The first batch is invalid when the second one, which depends on it, arrives.
fn late_dependent(store: &TestStore) {
    store.add_all(&[writing(1, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "bb")]);
}

/// The transaction was submitted again after the question, and the ledger may have refused the new batch because that
/// of another client was applied.
fn answer_about_an_earlier_invalid_batch_does_not_count(db: &Database) {
    let store = db.open_parallel();
    late_dependent(&store);
    let asked = ask(&store);
    assert_eq!(store.commit_all_of(SERVICE), [3]);
    store.add_all(&[again(1, 4, "cc")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    assert_eq!(store.absent_at_ledger(&asked).unwrap().ended, 0);
    assert_eq!(state(&store, 2), BatchState::New);
    store.free_all();
    assert_eq!(store.absent_at_ledger(&ask(&store)).unwrap().ended, 1);
}

fn new_dependent_of_an_invalid_batch_stops_no_other(db: &Database) {
    let store = db.open_parallel();
    late_dependent(&store);
    assert_eq!(store.commit_all_of(SERVICE), [3]);
    assert_eq!(store.absent_at_ledger(&ask(&store)).unwrap().ended, 1);
    assert_eq!(state(&store, 2), BatchState::Invalid);
}

fn new_dependent_continues_when_the_ledger_has_it(db: &Database) {
    let store = db.open_parallel();
    late_dependent(&store);
    store.found_at_ledger(&ask(&store)).unwrap();
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![3], vec![2]));
}

fn new_dependent_waits_for_the_transaction_sent_again(db: &Database) {
    let store = db.open_parallel();
    late_dependent(&store);
    store.add_all(&[again(1, 4, "cc")]);
    store.free_all();
    assert_eq!(store.absent_at_ledger(&ask(&store)).unwrap().ended, 0);
    assert_eq!(store.commit_all_of(SERVICE), [3, 4]);
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn transaction_sent_again_behind_the_dependent_does_not_help(db: &Database) {
    for halts in [false, true] {
        let db = db.another();
        let store =
            if halts { db.open_halting(StrategyKind::Parallel) } else { db.open_parallel() };
        store.add_all(&[writing(1, "aa")]);
        store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
        store.end(&store.take_up_to(10)[0], LedgerStatus::Invalid);
        // It conflicts with the dependent, so that each would wait for the other.
        store.add_all(&[again(1, 4, "bb")]);
        if halts {
            store.continue_after(&service(SERVICE), &id(1), None).unwrap();
        }
        store.free_all();
        assert_eq!(store.commit_all_of(SERVICE), [0; 0], "the dependent is not sent");
        assert_eq!(store.absent_at_ledger(&ask(&store)).unwrap().ended, 1);
        assert_eq!(state(&store, 2), BatchState::Invalid);
        assert_eq!(store.commit_all_of(SERVICE), [4]);
    }
}

fn halted_dependency_waits_for_the_operator_first(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    invalid_with_dependent(&store);
    assert_eq!(ask(&store), []);
    store.continue_after(&service(SERVICE), &id(1), None).unwrap();
    store.free_all();
    assert_eq!(state(&store, 2), BatchState::New);
    store.found_at_ledger(&ask(&store)).unwrap();
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn dependent_ends_with_what_an_operator_ends(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    invalid_with_dependent(&store);
    store.end_following(&service(SERVICE), &id(1), "a reason").unwrap();
    store.free_all();
    assert_eq!(ask(&store), []);
    for number in [2, 3] {
        let ended = store.one(SERVICE, number);
        assert_eq!(ended.progress.state, BatchState::Invalid, "{number}");
        assert!(ended.last_error.unwrap().contains("an operator ended what follows"), "{number}");
    }
}

fn batch_that_was_committed_late_satisfies_its_dependents(db: &Database) {
    let store = db.open_parallel();
    late_dependent(&store);
    let committed = Event::status(LedgerStatus::Committed);
    let late = store.record(&[Change::new(service(SERVICE), id(1), committed)]).unwrap();
    assert_eq!(late, [ChangeOutcome::Stale(Stale::CommittedAfterInvalid)]);
    store.found_at_ledger(&ask(&store)).unwrap();
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![3], vec![2]));
}

fn unanswered_batch_is_held_and_its_end_ends_the_hold(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    assert_eq!(store.hold_missing(Duration::from_secs(60)).unwrap(), 0);
    assert_eq!(store.hold_missing(Duration::ZERO).unwrap(), 1);
    assert_eq!(store.hold_missing(Duration::ZERO).unwrap(), 0, "it is held already");
    let [held] = store.waiting_holds().unwrap().try_into().unwrap();
    let reason = held.held.unwrap().reason;
    assert!(reason.contains("the ledger did not answer"), "{reason}");
    assert_eq!(store.service_counts().unwrap().held, 1);
    store.absent_at_ledger(&ask(&store)).unwrap();
    assert_eq!(store.waiting_holds().unwrap(), []);
    assert_eq!(db.number("select count(*) as number from waiting_holds"), 0);
}

fn released_batch_is_sent_without_an_answer(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    store.hold_missing(Duration::ZERO).unwrap();
    store.release_batch(&service(SERVICE), &id(2), Some("it is there")).unwrap();
    assert_eq!((ask(&store), store.commit_all_of(SERVICE)), (Vec::new(), vec![2]));
}

fn decided_batch_is_not_asked_about_any_more(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    store.decide(&service(SERVICE), &id(2), 0, Decision::Invalid).unwrap();
    assert_eq!((ask(&store), store.commit_all_of(SERVICE)), (Vec::new(), vec![3]));
}

/// There are more dependents than one commit ends, in the service and in another one.
fn all_of_many_dependents_end(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    for (name, first) in [(SERVICE, 1_000), ("c::d", 2_000)] {
        let batches = first..first + 600;
        let batches = batches.map(|n| depending(name, n, &format!("bb{n}"), &[transaction_of(1)]));
        store.add_all(&batches.collect::<Vec<_>>());
    }
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    store.free_all();
    assert_eq!(ask(&store), [transaction_of(1)]);
    assert_eq!(store.absent_at_ledger(&[transaction_of(1)]).unwrap().ended, 1_200);
    store.free_all();
    assert_eq!(db.scheduling_rows(), 0);
}

fn dependent_behind_says_that_the_ledger_is_asked(db: &Database) {
    let store = db.open_parallel();
    invalid_with_dependent(&store);
    let created_at = store.one(SERVICE, 2).created_at;
    let ahead = store.ahead(&service(SERVICE), &[created_at]).unwrap().pop().unwrap().unwrap();
    let WaitReason::MissingTransaction { transaction_id, invalid, .. } = ahead.reason else {
        panic!("{ahead:?}")
    };
    assert_eq!((transaction_id, invalid), (transaction_of(1), true));
    assert_eq!(ahead.head, None);
}

/// A batch that writes everything also waits for an earlier one that waits for another service.
fn batch_of_the_same_commit_is_not_overtaken(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[NewBatch { service_id: service("c::d"), ..writing(1, "aa") }]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "")]);
    assert_eq!(store.commit_all_of(SERVICE), [0; 0]);
    store.commit_all_of("c::d");
    store.free_all();
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![2], vec![3]));
}

fn dependency_of_the_same_moment_is_found_by_the_question(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending("c::d", 2, "bb", &[transaction_of(1)])]);
    store.add_all(&[writing(1, "aa")]);
    // This simulates that neither commit has seen the other.
    db.execute("delete from changed_blockers").unwrap();
    ask(&store);
    store.free_all();
    assert_eq!((store.commit_all_of(SERVICE), ask(&store)), (vec![1], Vec::new()));
    store.free_all();
    assert_eq!(store.commit_all_of("c::d"), [2]);
}

fn restored_batch_that_ends_may_have_been_sent(db: &Database) {
    let store = db.open_halting(StrategyKind::Serial);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    db.restored().mark_restored(true, &by_program()).unwrap();
    store.end_following(&service(SERVICE), &id(1), "a reason").unwrap();
    store.free_all();
    let ended = store.one(SERVICE, 2);
    let error = ended.last_error.unwrap();
    assert_eq!(ended.progress.state, BatchState::Invalid);
    assert!(error.contains("may have been sent") && !error.contains("was not sent"), "{error}");
}
