//! Delays, holds, outcomes and operators' actions in services with several lanes.

use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Event, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, by_program, happened, id, on_both, service};

on_both! {
    given_back_batches_can_be_taken_again,
    delayed_batch_stops_only_those_that_conflict,
    held_batch_stops_only_those_that_conflict,
    hold_of_a_waiting_batch_begins_in_its_lane,
    several_batches_end_in_one_commit,
    delays_of_all_lanes_are_ended,
    each_batch_has_its_own_number_of_delays,
    held_batches_of_all_lanes_are_listed,
    services_are_counted_once,
    batch_in_doubt_stops_only_those_that_conflict,
    open_batches_of_a_restored_database_are_in_doubt,
    depth_counts_what_ended_in_all_lanes,
}

fn given_back_batches_can_be_taken_again(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let taken = store.take_up_to(9);
    store.give_back(&taken).unwrap();
    let again = store.take_up_to(9);
    let attempts: Vec<_> = again.iter().map(|taken| taken.attempt).collect();
    assert_eq!((numbers(&again), attempts), (vec![1, 2, 3], vec![2; 3]));
}

fn delay_until(store: &crate::fixture::TestStore, db: &Database, number: usize) {
    let taken = store.take_up_to(9);
    let busy = |taken| happened(taken, Event::Outcome { attempt: 1, outcome: Outcome::Busy });
    let retry_at = db.now().plus(std::time::Duration::from_secs(15));
    let change = Change { retry_at: Some(retry_at), ..busy(&taken[number]) };
    store.record_one(change);
}

fn delayed_batch_stops_only_those_that_conflict(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa")]);
    delay_until(&store, db, 0);
    store.add_all(&[writing(4, "cc"), writing(5, "aa")]);
    assert_eq!(numbers(&store.take_up_to(9)), [4]);
    db.later(15);
    assert_eq!(numbers(&store.take_up_to(9)), [1]);
}

fn held_batch_stops_only_those_that_conflict(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa")]);
    store.hold_batch(&service(SERVICE), &id(1), "look first").unwrap();
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
    store.release_batch(&service(SERVICE), &id(1), None).unwrap();
    assert_eq!(numbers(&store.take_up_to(9)), [1]);
}

fn hold_of_a_waiting_batch_begins_in_its_lane(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb")]);
    store.hold_batch(&service(SERVICE), &id(2), "look first").unwrap();
    store.commit(&store.take_up_to(9));
    assert!(store.take_up_to(9).is_empty());
    let [held] = store.held_batches(None, 9).unwrap().try_into().unwrap();
    assert_eq!(held.batch_id, id(2));
    store.release_batch(&service(SERVICE), &id(2), None).unwrap();
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
}

fn several_batches_end_in_one_commit(db: &Database) {
    let store = db.open_parallel();
    let all: Vec<_> = (1..=20).map(|n| writing(n, &format!("{:02x}", n % 10))).collect();
    store.add_all(&all);
    let first = store.take_up_to(99);
    assert_eq!(numbers(&first), (1..=10).collect::<Vec<_>>());
    store.commit(&first);
    let second = store.take_up_to(99);
    assert_eq!(numbers(&second), (11..=20).collect::<Vec<_>>());
    store.commit(&second);
    assert_eq!((store.depth(&service(SERVICE)).unwrap(), db.scheduling_rows()), (0, 0));
}

fn delays_of_all_lanes_are_ended(db: &Database) {
    let store = db.open_scheduled(grid_batch_core::queue::StrategyKind::Parallel, 1_200);
    let all: Vec<_> = (1..=1_100).map(|n| writing(n, &format!("{n:04x}"))).collect();
    store.add_all(&all);
    let taken = store.take_up_to(2_000);
    assert_eq!(taken.len(), 1_100);
    let retry_at = Some(db.now().plus(std::time::Duration::from_secs(15)));
    let busy = |taken| {
        let event = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
        Change { retry_at, ..happened(taken, event) }
    };
    store.record(&taken.iter().map(busy).collect::<Vec<_>>()).unwrap();
    assert!(store.take_up_to(9).is_empty());
    assert_eq!(store.end_delays(None).unwrap().batches.len(), 1_100);
    assert_eq!(store.take_up_to(2_000).len(), 1_100);
}

fn each_batch_has_its_own_number_of_delays(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    delay_until(&store, db, 0);
    let delays = |number: i64| {
        db.number(&format!(
            "select cast(s.delays as bigint) as number from lanes s
             join batches b on b.seq = s.batch_seq where b.seq = {number}"
        ))
    };
    assert_eq!([delays(1), delays(2)], [1, 0]);
}

fn held_batches_of_all_lanes_are_listed(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    for taken in store.take_up_to(9) {
        store.outcome(&taken, Outcome::Ambiguous);
        store.hold(&taken, "no evidence");
    }
    let page = store.held_batches(None, 2).unwrap();
    assert_eq!(page.len(), 3, "a page has all of a service, because the next begins behind it");
    assert!(store.held_batches(Some(&service(SERVICE)), 2).unwrap().is_empty());
}

fn services_are_counted_once(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
    let taken = store.take_up_to(9);
    for taken in &taken[..2] {
        store.outcome(taken, Outcome::Ambiguous);
        store.hold(taken, "no evidence");
    }
    let counts = store.service_counts().unwrap();
    assert_eq!((counts.open, counts.held), (1, 1));
}

fn batch_in_doubt_stops_only_those_that_conflict(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb")]);
    let taken = store.take_up_to(1);
    store.outcome(&taken[0], Outcome::Ambiguous);
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
    store.evidence(&taken[0], Evidence::Absent);
    let again = store.take_up_to(9);
    assert_eq!(numbers(&again), [1]);
    let ended = store.end(&again[0], LedgerStatus::Committed);
    assert!(matches!(ended, ChangeOutcome::Applied { next_waits: true, .. }), "{ended:?}");
    assert_eq!(numbers(&store.take_up_to(9)), [2]);
}

fn open_batches_of_a_restored_database_are_in_doubt(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "bb")]);
    drop(store);
    let marked = db.restored().mark_restored(false, &by_program()).unwrap();
    assert_eq!((marked.batches, marked.services), (3, 1));
    let store = db.open_parallel();
    store.add_all(&[writing(4, "cc")]);
    assert_eq!(numbers(&store.take_up_to(9)), [4], "stored after the loss");
    let state = |number| store.one(SERVICE, number).progress.state;
    assert_eq!([1, 3].map(state), [BatchState::InDoubt; 2]);
    let doubt = store.one(SERVICE, 1);
    let committed = Event::status(LedgerStatus::Committed);
    store.record_one(Change::new(doubt.service_id, doubt.batch_id, committed));
    assert_eq!(state(2), BatchState::InDoubt, "it was freed");
}

fn depth_counts_what_ended_in_all_lanes(db: &Database) {
    let store = db.open_parallel();
    let all: Vec<_> = (1..=9).map(|n| writing(n, &format!("{n:02x}"))).collect();
    store.add_all(&all);
    store.commit(&store.take_up_to(5));
    assert_eq!(store.depth(&service(SERVICE)).unwrap(), 4);
    assert_eq!(store.depths(None, 9).unwrap()[0].open, 4);
}
