//! Which batches the strategies take, and changes of the strategy at a restart.

use std::{collections::HashMap, sync::Arc};

use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{
    AfterInvalid, RoundStore, Scheduling, ServiceShare, StrategyKind, TakenBatch,
};
use grid_batch_store::{ClaimStore, StoreOptions};

use super::fixture::{SERVICE, ScheduledExt, accessing, numbers, restart, rules, writing};
use crate::fixture::{Database, StoreExt, TestStore, on_both, service};

on_both! {
    serial_takes_one_at_a_time,
    lanes_limit_what_is_under_way,
    share_limits_what_is_taken,
    services_can_have_other_strategies,
    pipeline_sends_the_next_when_the_one_before_is_accepted,
    pipeline_waits_for_all_behind_a_lost_batch,
    pipeline_sends_a_lost_tail_again_in_order,
    accepted_batch_of_a_pipeline_says_that_the_next_waits,
    halted_pipeline_sends_nothing_that_is_behind,
    parallel_after_serial_takes_what_is_free,
    serial_after_parallel_waits_for_all_under_way,
    parallel_after_pipeline_keeps_conflicting_batches_apart,
    fewer_lanes_after_a_restart_drain_first,
}

fn serial_takes_one_at_a_time(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Serial, 1);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa")]);
    for number in 1..=3 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        assert!(store.take_up_to(9).is_empty());
        store.commit(&taken);
    }
    assert_eq!(db.scheduling_rows(), 0);
}

fn lanes_limit_what_is_under_way(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 2);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc"), writing(4, "dd")]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1, 2]);
    let ended = store.end(&first[1], LedgerStatus::Committed);
    let next_waits = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
    assert_eq!(ended, next_waits);
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
    let lanes = db.number("select count(*) as number from lanes");
    assert_eq!(lanes, 2);
}

fn share_limits_what_is_taken(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    assert_eq!(numbers(&store.take_up_to(2)), [1, 2]);
    assert_eq!(numbers(&store.take_up_to(2)), [3]);
}

fn services_can_have_other_strategies(db: &Database) {
    let parallel = Scheduling { strategy: StrategyKind::Parallel, lanes: 9, ..Scheduling::SERIAL };
    let mut rules = rules(StrategyKind::Serial, 1);
    rules.services = HashMap::from([(service(SERVICE), parallel)]);
    let options = StoreOptions { scheduling: Arc::new(rules), ..db.options() };
    let store = db.open_with(options);
    store.add_all(&[
        writing(1, "aa"),
        writing(2, "bb"),
        accessing("a::1", 3, &[], &["aa"]),
        accessing("a::1", 4, &[], &["bb"]),
    ]);
    assert_eq!(numbers(&store.take_up_to(9)), [1, 2]);
    assert_eq!(numbers(&store.take(&["a::1"])), [3]);
    assert!(store.take(&["a::1"]).is_empty());
}

fn pipeline(db: &Database) -> TestStore {
    let store = db.open_scheduled(StrategyKind::Pipeline, 9);
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb"), writing(4, "aa")]);
    store
}

fn pipeline_sends_the_next_when_the_one_before_is_accepted(db: &Database) {
    let store = pipeline(db);
    for number in 1..=4 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        assert!(store.take_up_to(9).is_empty(), "{number} is with a submitter");
        store.outcome(&taken[0], Outcome::Accepted);
    }
    assert!(store.take_up_to(9).is_empty());
}

fn accepted_batch_of_a_pipeline_says_that_the_next_waits(db: &Database) {
    let store = pipeline(db);
    let taken = store.take_up_to(9);
    let accepted = store.outcome(&taken[0], Outcome::Accepted);
    let expected = ChangeOutcome::Applied { state: BatchState::Pending, next_waits: true };
    assert_eq!(accepted, expected);
}

fn pipeline_waits_for_all_behind_a_lost_batch(db: &Database) {
    let store = pipeline(db);
    let taken: Vec<_> = (0..3)
        .map(|_| {
            let taken = store.take_up_to(9).remove(0);
            store.outcome(&taken, Outcome::Accepted);
            taken
        })
        .collect();
    store.evidence(&taken[1], Evidence::Absent);
    assert!(store.take_up_to(9).is_empty(), "3 may still be at the ledger, behind 2");
    store.evidence(&taken[2], Evidence::Absent);
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
}

fn halted_pipeline_sends_nothing_that_is_behind(db: &Database) {
    let mut rules = rules(StrategyKind::Pipeline, 9);
    rules.default.after_invalid = AfterInvalid::Halt;
    let store = db.open_with(StoreOptions { scheduling: Arc::new(rules), ..db.options() });
    store.add_all(&[1, 2, 3, 4].map(|number| writing(number, "aa")));
    let sent: Vec<TakenBatch> = (0..3)
        .map(|_| {
            let taken = store.take_up_to(9).remove(0);
            store.outcome(&taken, Outcome::Accepted);
            taken
        })
        .collect();
    store.status(&sent[1], LedgerStatus::Invalid);
    assert!(store.take_up_to(9).is_empty(), "4 is in a lane");
    store.evidence(&sent[2], Evidence::Absent);
    assert!(store.take_up_to(9).is_empty(), "3 is not sent again");
    store.evidence(&sent[0], Evidence::Absent);
    assert_eq!(numbers(&store.take_up_to(9)), [1], "it is before the invalid one");
}

fn pipeline_sends_a_lost_tail_again_in_order(db: &Database) {
    let store = pipeline(db);
    let mut sent = Vec::new();
    for _ in 0..3 {
        let taken = store.take_up_to(9).remove(0);
        store.outcome(&taken, Outcome::Accepted);
        sent.push(taken);
    }
    store.status(&sent[0], LedgerStatus::Committed);
    for lost in sent[1..].iter().rev() {
        store.evidence(lost, Evidence::Absent);
    }
    for number in 2..=4 {
        let taken = store.take_up_to(9);
        assert_eq!(numbers(&taken), [number]);
        store.outcome(&taken[0], Outcome::Accepted);
    }
}

/// Takes the batches that can be taken now.
fn take(claims: &ClaimStore) -> Vec<TakenBatch> {
    let share = ServiceShare { service_id: service(SERVICE), batches: 99 };
    claims.take_round(&[share], &mut |_| true).unwrap().batches
}

fn parallel_after_serial_takes_what_is_free(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Serial, 1);
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa"), writing(4, "cc")]);
    let claims = restart(db, store, StrategyKind::Parallel, 9);
    assert_eq!(numbers(&take(&claims)), [1, 2, 4]);
}

fn serial_after_parallel_waits_for_all_under_way(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let taken = store.take_up_to(2);
    for taken in &taken {
        store.outcome(taken, Outcome::Accepted);
    }
    let claims = restart(db, store, StrategyKind::Serial, 1);
    assert!(take(&claims).is_empty());
    claims.store().status(&of_next_owner(&taken[0]), LedgerStatus::Committed);
    assert!(take(&claims).is_empty(), "2 is under way");
    claims.store().status(&of_next_owner(&taken[1]), LedgerStatus::Committed);
    assert_eq!(numbers(&take(&claims)), [3]);
}

/// A taken batch with the epoch of the next owner of its service.
fn of_next_owner(taken: &TakenBatch) -> TakenBatch {
    TakenBatch { epoch: taken.epoch + 1, ..taken.clone() }
}

fn parallel_after_pipeline_keeps_conflicting_batches_apart(db: &Database) {
    let store = pipeline(db);
    let in_lanes = db.number("select count(*) as number from lanes where busy");
    assert_eq!(in_lanes, 4);
    let claims = restart(db, store, StrategyKind::Parallel, 9);
    let mut ready = take(&claims);
    assert_eq!(numbers(&ready), [1, 3]);
    for number in [2, 4] {
        claims.store().outcome(&ready[0], Outcome::Committed);
        ready = take(&claims);
        assert_eq!(numbers(&ready), [number]);
    }
}

fn fewer_lanes_after_a_restart_drain_first(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc"), writing(4, "dd")]);
    store.take_up_to(3).iter().for_each(|taken| {
        store.outcome(taken, Outcome::Accepted);
    });
    store.add_all(&[writing(5, "ee")]);
    let claims = restart(db, store, StrategyKind::Parallel, 2);
    assert_eq!(numbers(&take(&claims)), [4, 5], "they were next before the restart");
    claims.store().add_all(&[writing(6, "ff")]);
    assert!(take(&claims).is_empty(), "more are under way than may be");
}
