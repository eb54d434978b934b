//! Invalid batches that stop others, and what operators decide.

use std::time::Duration;

use grid_batch_core::Clock;
use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus, Stale};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchQueryStore, HaltCursor};
use grid_batch_core::queue::{StrategyKind, TakenBatch};

use super::fixture::{
    SERVICE, ScheduledExt, accessing, depending, numbers, transaction_of, writing,
};
use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    invalid_batch_stops_what_conflicts_with_it,
    continued_service_goes_on,
    dependents_of_a_halted_batch_end_when_it_is_continued,
    ended_followers_are_not_sent,
    follower_that_waits_for_another_batch_ends_too,
    batches_after_the_decision_are_not_ended,
    serial_service_stops_as_a_whole,
    serial_service_ends_what_follows,
    pipeline_sends_nothing_behind_an_invalid_batch,
    halts_are_listed_and_counted,
    decision_about_a_batch_that_stops_nothing_is_refused,
    decisions_are_in_the_log_of_attempts,
    policy_to_continue_stops_nothing,
    retention_keeps_what_stops_others,
    many_followers_end_in_steps,
    batches_after_the_decision_do_not_wait,
    batch_after_the_decision_waits_for_older_ones,
    halt_is_listed_until_what_follows_has_ended,
    halts_of_batches_positioned_late_are_listed,
}

fn make_invalid(store: &TestStore) {
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
}

fn continue_after(store: &TestStore, number: u64) {
    let done = store.continue_after(&service(SERVICE), &id(number), Some("looked at it")).unwrap();
    assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
}

fn end_following(store: &TestStore, number: u64) {
    let done = store.end_following(&service(SERVICE), &id(number), "they build on it").unwrap();
    assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
    store.free_all();
}

fn states(store: &TestStore, numbers: &[u64]) -> Vec<BatchState> {
    numbers.iter().map(|number| store.one(SERVICE, *number).progress.state).collect()
}

fn invalid_batch_stops_what_conflicts_with_it(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb")]);
    make_invalid(&store);
    store.free_all();
    assert_eq!(numbers(&store.take_up_to(10)), [3], "only what conflicts waits");
    store.add_all(&[writing(4, "aabb"), accessing(SERVICE, 5, &["aa"], &["cc"]), writing(6, "dd")]);
    store.add_all(&[depending(SERVICE, 7, "ee", &[transaction_of(1)])]);
    assert_eq!(numbers(&store.take_up_to(10)), [6], "also what came later waits");
    store.free_all();
    assert_eq!(states(&store, &[2, 4, 5, 7]), [BatchState::New; 4]);
}

fn continued_service_goes_on(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    make_invalid(&store);
    store.add_all(&[writing(3, "aa"), batch(SERVICE, 4)]);
    continue_after(&store, 1);
    for number in 2..=4 {
        assert_eq!(store.commit_all_of(SERVICE), [number]);
    }
    assert_eq!(db.scheduling_rows(), 0);
}

fn dependents_of_a_halted_batch_end_when_it_is_continued(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "bb")]);
    make_invalid(&store);
    store.free_all();
    assert_eq!(states(&store, &[2]), [BatchState::New]);
    continue_after(&store, 1);
    store.answer_absent();
    assert_eq!(states(&store, &[2]), [BatchState::Invalid]);
    assert_eq!(store.halts(None, 10).unwrap(), [], "an operator has decided about it already");
    assert_eq!(store.commit_all_of(SERVICE), [3]);
}

fn ended_followers_are_not_sent(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aa"), writing(4, "bb")]);
    store.add_all(&[depending(SERVICE, 5, "cc", &[transaction_of(3)])]);
    make_invalid(&store);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3, 5]), [BatchState::Invalid; 3]);
    let error = store.one(SERVICE, 2).last_error.unwrap();
    assert!(error.contains("an operator ended what follows"), "{error}");
    assert_eq!(store.commit_all_of(SERVICE), [4]);
    store.add_all(&[writing(6, "aa")]);
    assert_eq!(store.commit_all_of(SERVICE), [6], "nothing stops the service any more");
    assert_eq!(db.scheduling_rows(), 0);
}

/// It is positioned after another batch that it conflicts with, for which it waits first.
fn follower_that_waits_for_another_batch_ends_too(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), accessing(SERVICE, 3, &[], &["aa", "bb"])]);
    let taken = store.take_up_to(10);
    assert_eq!(numbers(&taken), [1, 2]);
    store.end(&taken[0], LedgerStatus::Invalid);
    end_following(&store, 1);
    assert_eq!(states(&store, &[3]), [BatchState::New], "it waits for the second one");
    store.end(&taken[1], LedgerStatus::Committed);
    store.free_all();
    assert_eq!(states(&store, &[3]), [BatchState::Invalid]);
    assert_eq!(db.number("select count(*) as number from halts"), 0);
}

fn batches_after_the_decision_are_not_ended(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), accessing(SERVICE, 3, &[], &["aa", "bb"])]);
    let taken = store.take_up_to(10);
    store.end(&taken[0], LedgerStatus::Invalid);
    end_following(&store, 1);
    store.add_all(&[writing(4, "aa")]);
    store.end(&taken[1], LedgerStatus::Committed);
    store.free_all();
    assert_eq!(states(&store, &[3, 4]), [BatchState::Invalid, BatchState::New]);
    assert_eq!(store.commit_all_of(SERVICE), [4]);
}

fn serial_service_stops_as_a_whole(db: &Database) {
    let store = db.open_halting(StrategyKind::Serial);
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    make_invalid(&store);
    store.add_all(&[writing(3, "cc")]);
    store.free_all();
    assert_eq!(numbers(&store.take_up_to(10)), [0; 0]);
    continue_after(&store, 1);
    assert_eq!((store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)), (vec![2], vec![3]));
}

fn serial_service_ends_what_follows(db: &Database) {
    let store = db.open_halting(StrategyKind::Serial);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    make_invalid(&store);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3]), [BatchState::Invalid; 2]);
    store.add_all(&[writing(4, "dd")]);
    assert_eq!(store.commit_all_of(SERVICE), [4]);
    assert_eq!(store.depth(&service(SERVICE)).unwrap(), 0);
}

fn pipeline_sends_nothing_behind_an_invalid_batch(db: &Database) {
    let store = db.open_halting(StrategyKind::Pipeline);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let first = store.take_up_to(10);
    store.outcome(&first[0], Outcome::Accepted);
    let second = store.take_up_to(10);
    assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![2]));
    store.outcome(&second[0], Outcome::Accepted);
    store.status(&first[0], LedgerStatus::Invalid);
    assert_eq!(numbers(&store.take_up_to(10)), [0; 0], "the third one is in a lane already");
    store.status(&second[0], LedgerStatus::Committed);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, 3]), [BatchState::Committed, BatchState::Invalid]);
    store.add_all(&[writing(4, "dd")]);
    assert_eq!(store.commit_all_of(SERVICE), [4]);
}

fn halts_are_listed_and_counted(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    assert_eq!(store.service_counts().unwrap().halted, 0);
    for taken in store.take_up_to(10) {
        store.end(&taken, LedgerStatus::Invalid);
    }
    let halts = store.halts(None, 1).unwrap();
    assert_eq!(halts[0].batch.batch_id, id(1));
    assert!(halts[0].since <= store.clock().now());
    let rest = store.halts(Some(&HaltCursor::after(&halts[0])), 10).unwrap();
    assert_eq!(rest.iter().map(|halt| halt.batch.batch_id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(store.service_counts().unwrap().halted, 1, "both are of one service");
}

fn decision_about_a_batch_that_stops_nothing_is_refused(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa")]);
    let refused = store.continue_after(&service(SERVICE), &id(1), None).unwrap();
    let stops_nothing = Stale::StopsNothing { state: BatchState::New };
    assert_eq!(refused, ChangeOutcome::Stale(stops_nothing));
    make_invalid(&store);
    continue_after(&store, 1);
    let again = store.end_following(&service(SERVICE), &id(1), "too late").unwrap();
    assert!(matches!(again, ChangeOutcome::Stale(Stale::StopsNothing { .. })), "{again:?}");
    let unknown = store.continue_after(&service(SERVICE), &id(9), None).unwrap();
    assert_eq!(unknown, ChangeOutcome::NotFound);
}

fn decisions_are_in_the_log_of_attempts(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    make_invalid(&store);
    end_following(&store, 1);
    let log = |number| {
        let details = store.details(&service(SERVICE), &id(number)).unwrap().unwrap();
        details.failed_attempts.iter().map(|attempt| attempt.outcome.clone()).collect::<Vec<_>>()
    };
    assert_eq!(log(1), ["what follows it was ended by an operator"]);
    assert_eq!(log(2), ["invalid, decided by an operator"]);
}

fn policy_to_continue_stops_nothing(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    make_invalid(&store);
    assert_eq!(store.halts(None, 10).unwrap(), []);
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn retention_keeps_what_stops_others(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    make_invalid(&store);
    let later = store.clock().now().plus(Duration::from_secs(60));
    assert_eq!(store.remove_in_steps(later, 10), 0);
    continue_after(&store, 1);
    assert_eq!(store.remove_in_steps(later, 10), 1);
    assert_eq!(store.commit_all_of(SERVICE), [2]);
}

fn many_followers_end_in_steps(db: &Database) {
    const MANY: u64 = 700;
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[writing(1, "aa")]);
    let readers: Vec<_> = (2..MANY).map(|n| accessing(SERVICE, n, &["aa"], &["bb"])).collect();
    for readers in readers.chunks(100) {
        store.add_all(readers);
    }
    make_invalid(&store);
    end_following(&store, 1);
    assert_eq!(states(&store, &[2, MANY / 2, MANY - 1]), [BatchState::Invalid; 3]);
    assert_eq!(store.depth(&service(SERVICE)).unwrap(), 0);
    assert_eq!(db.scheduling_rows(), 0);
}

/// A halt whose followers have not all ended: one waits for a batch that is under way.
fn ending(db: &Database) -> (TestStore, TakenBatch) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[
        accessing(SERVICE, 1, &["dd"], &["aa", "cc"]),
        accessing(SERVICE, 2, &["dd"], &["bb"]),
        accessing(SERVICE, 3, &[], &["aa", "bb"]),
    ]);
    let mut taken = store.take_up_to(10);
    store.end(&taken[0], LedgerStatus::Invalid);
    end_following(&store, 1);
    (store, taken.remove(1))
}

fn batches_after_the_decision_do_not_wait(db: &Database) {
    let (store, second) = ending(db);
    store.add_all(&[writing(4, "cc")]);
    assert_eq!(store.commit_all_of(SERVICE), [4], "the third one still waits");
    store.add_all(&[batch(SERVICE, 5)]);
    store.end(&second, LedgerStatus::Committed);
    store.free_all();
    assert_eq!(states(&store, &[3]), [BatchState::Invalid]);
    assert_eq!(store.commit_all_of(SERVICE), [5]);
    assert_eq!(db.scheduling_rows(), 0);
}

fn batch_after_the_decision_waits_for_older_ones(db: &Database) {
    let (store, second) = ending(db);
    store.add_all(&[writing(4, "dd")]);
    assert_eq!(numbers(&store.take_up_to(9)), [0; 0], "the second one reads it");
    store.end(&second, LedgerStatus::Committed);
    assert_eq!(store.commit_all_of(SERVICE), [4]);
}

fn halt_is_listed_until_what_follows_has_ended(db: &Database) {
    let (store, second) = ending(db);
    let [halt] = store.halts(None, 9).unwrap().try_into().unwrap();
    assert!(halt.is_ending && halt.batch.batch_id == id(1), "{halt:?}");
    assert_eq!(store.service_counts().unwrap().halted, 0, "nothing waits for an operator");
    store.end(&second, LedgerStatus::Committed);
    store.free_all();
    assert_eq!(store.halts(None, 9).unwrap(), []);
}

fn halts_of_batches_positioned_late_are_listed(db: &Database) {
    let store = db.open_halting(StrategyKind::Parallel);
    store.add_all(&[depending(SERVICE, 1, "aa", &[transaction_of(2)])]);
    store.add_all(&[writing(2, "bb"), writing(3, "cc")]);
    store.free_all();
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [2, 3]);
    store.end(&first[0], LedgerStatus::Committed);
    store.end(&first[1], LedgerStatus::Invalid);
    store.free_all();
    make_invalid(&store);
    let mut listed = store.halts(None, 1).unwrap();
    while let Some(next) =
        store.halts(listed.last().map(HaltCursor::after).as_ref(), 1).unwrap().pop()
    {
        listed.push(next);
        assert!(listed.len() < 9);
    }
    let ids: Vec<_> = listed.iter().map(|halt| halt.batch.batch_id).collect();
    assert_eq!(ids, [id(3), id(1)]);
}
