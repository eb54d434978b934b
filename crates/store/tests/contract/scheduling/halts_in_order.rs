//! Invalid batches that stop others in services that submit in order: batches before them, and batches that were sent
//! already.

use grid_batch_core::batches::{BatchState, ChangeOutcome, Decision, Event, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{StrategyKind, TakenBatch};

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, TestStore, happened, id, on_both, service};

on_both! {
    batches_before_an_invalid_one_continue,
    batches_before_an_invalid_one_do_not_end,
    two_decisions_end_only_what_follows_each,
    lost_batches_of_a_pipeline_end_and_are_not_sent_again,
    batch_that_is_lost_after_the_decision_ends,
    delayed_batch_of_a_pipeline_ends,
    batch_that_may_still_arrive_is_held,
}

const IN_ORDER: [StrategyKind; 2] = [StrategyKind::Serial, StrategyKind::Pipeline];

fn add(store: &TestStore, numbers: std::ops::RangeInclusive<u64>) {
    store.add_all(&numbers.map(|n| writing(n, &format!("{n:02x}"))).collect::<Vec<_>>());
}

fn decide_invalid(store: &TestStore, number: u64, attempt: u32) {
    let decided = store.decide(&service(SERVICE), &id(number), attempt, Decision::Invalid).unwrap();
    assert!(matches!(decided, ChangeOutcome::Applied { .. }), "{decided:?}");
    store.free_all();
}

fn end_following(store: &TestStore, number: u64) {
    let done = store.end_following(&service(SERVICE), &id(number), "they build on it").unwrap();
    assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
    store.free_all();
}

fn states(store: &TestStore, numbers: &[u64]) -> Vec<BatchState> {
    numbers.iter().map(|number| store.one(SERVICE, *number).progress.state).collect()
}

/// Takes and commits batches until no more can be taken.
fn commit_rest(store: &TestStore) -> Vec<u64> {
    let mut committed = Vec::new();
    loop {
        let next = store.commit_all_of(SERVICE);
        store.free_all();
        if next.is_empty() {
            return committed;
        }
        committed.extend(next);
    }
}

fn batches_before_an_invalid_one_continue(db: &Database) {
    for strategy in IN_ORDER {
        let db = db.another();
        let store = db.open_halting(strategy);
        add(&store, 1..=5);
        decide_invalid(&store, 3, 0);
        assert_eq!(commit_rest(&store), [1, 2], "{strategy:?}");
        assert_eq!(states(&store, &[4, 5]), [BatchState::New; 2], "{strategy:?}");
        store.continue_after(&service(SERVICE), &id(3), None).unwrap();
        assert_eq!(commit_rest(&store), [4, 5], "{strategy:?}");
    }
}

fn batches_before_an_invalid_one_do_not_end(db: &Database) {
    for strategy in IN_ORDER {
        let db = db.another();
        let store = db.open_halting(strategy);
        add(&store, 1..=5);
        decide_invalid(&store, 3, 0);
        end_following(&store, 3);
        assert_eq!(states(&store, &[1, 2]), [BatchState::New; 2], "{strategy:?}");
        assert_eq!(states(&store, &[4, 5]), [BatchState::Invalid; 2], "{strategy:?}");
        add(&store, 6..=6);
        assert_eq!(commit_rest(&store), [1, 2, 6], "{strategy:?}");
        assert_eq!(db.number("select count(*) as number from halts"), 0);
    }
}

fn two_decisions_end_only_what_follows_each(db: &Database) {
    let store = db.open_halting(StrategyKind::Serial);
    add(&store, 1..=3);
    decide_invalid(&store, 2, 0);
    store.end_following(&service(SERVICE), &id(2), "they build on it").unwrap();
    add(&store, 4..=6);
    decide_invalid(&store, 5, 0);
    end_following(&store, 5);
    assert_eq!(states(&store, &[1, 4]), [BatchState::New; 2]);
    assert_eq!(states(&store, &[3, 6]), [BatchState::Invalid; 2]);
    assert_eq!(commit_rest(&store), [1, 4]);
}

/// A pipeline whose first batch is invalid, with three more that the ledger accepted.
fn sent(db: &Database) -> (TestStore, Vec<TakenBatch>) {
    let store = db.open_halting(StrategyKind::Pipeline);
    add(&store, 1..=4);
    let mut sent = Vec::new();
    while sent.len() < 4 {
        for taken in store.take_up_to(9) {
            store.outcome(&taken, Outcome::Accepted);
            sent.push(taken);
        }
    }
    store.status(&sent[0], LedgerStatus::Invalid);
    db.later(1);
    (store, sent)
}

fn lost_batches_of_a_pipeline_end_and_are_not_sent_again(db: &Database) {
    let (store, sent) = sent(db);
    for lost in &sent[1..] {
        store.evidence(lost, Evidence::Lost);
    }
    assert_eq!(states(&store, &[2, 3, 4]), [BatchState::Absent; 3]);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3, 4]), [BatchState::Invalid; 3]);
    let error = store.one(SERVICE, 2).last_error.unwrap();
    assert!(error.ends_with("the batch is not sent again"), "{error}");
    add(&store, 5..=5);
    assert_eq!(commit_rest(&store), [5]);
}

fn batch_that_is_lost_after_the_decision_ends(db: &Database) {
    let (store, sent) = sent(db);
    add(&store, 5..=5);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3, 4]), [BatchState::Pending; 3], "the ledger may apply them");
    assert_eq!(states(&store, &[5]), [BatchState::Invalid]);
    add(&store, 6..=6);
    store.status(&sent[1], LedgerStatus::Committed);
    for lost in &sent[2..] {
        store.evidence(lost, Evidence::Lost);
    }
    assert_eq!(numbers(&store.take_up_to(9)), [0; 0], "none is sent again");
    store.free_all();
    assert_eq!(states(&store, &[3, 4]), [BatchState::Invalid; 2]);
    assert_eq!(commit_rest(&store), [6]);
}

fn delayed_batch_of_a_pipeline_ends(db: &Database) {
    let store = db.open_halting(StrategyKind::Pipeline);
    add(&store, 1..=3);
    let first = store.take_up_to(9);
    store.outcome(&first[0], Outcome::Accepted);
    let second = store.take_up_to(9);
    store.record_one(happened(&second[0], Event::Outcome { attempt: 1, outcome: Outcome::Busy }));
    store.status(&first[0], LedgerStatus::Invalid);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3]), [BatchState::Invalid; 2]);
    add(&store, 4..=4);
    assert_eq!(commit_rest(&store), [4]);
}

/// Evidence of absence only covers what has arrived, so such a batch is neither sent again nor ended before an operator
/// decides.
fn batch_that_may_still_arrive_is_held(db: &Database) {
    let store = db.open_halting(StrategyKind::Pipeline);
    add(&store, 1..=3);
    let first = store.take_up_to(9);
    store.outcome(&first[0], Outcome::Accepted);
    let second = store.take_up_to(9);
    store.outcome(&second[0], Outcome::Ambiguous);
    store.evidence(&second[0], Evidence::Absent);
    store.status(&first[0], LedgerStatus::Invalid);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3]), [BatchState::Absent, BatchState::Invalid]);
    let [held] = store.held_batches(None, 9).unwrap().try_into().unwrap();
    let hold = held.held.unwrap();
    assert!(hold.until_decision && hold.reason.contains("may still arrive"), "{hold:?}");
    add(&store, 4..=4);
    assert_eq!(commit_rest(&store), [0; 0]);
    decide_invalid(&store, 2, 1);
    end_following(&store, 2);
    add(&store, 5..=5);
    assert_eq!(commit_rest(&store), [5]);
}
