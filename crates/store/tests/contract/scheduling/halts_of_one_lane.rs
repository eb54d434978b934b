//! Invalid batches that stop services with one lane, for ledgers that do not use declared access.

use std::sync::Arc;

use grid_batch_core::batches::{BatchState, ChangeOutcome, Decision, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchQueryStore, WaitReason};
use grid_batch_core::queue::{AfterInvalid, Scheduling, SchedulingRules};
use grid_batch_store::StoreOptions;

use super::fixture::{SERVICE, ScheduledExt, numbers};
use crate::fixture::{Database, StoreExt, TestStore, batch, id, on_both, service};

on_both! {
    invalid_batch_stops_the_service_until_it_is_continued,
    stopped_batches_say_what_they_wait_for,
    what_follows_ends_in_steps,
    what_follows_a_waiting_batch_ends,
    batches_before_a_waiting_one_continue,
    command_follows_the_rules_of_the_server,
    policy_to_continue_records_nothing,
    expired_batch_stops_the_service,
}

fn options(db: &Database, after_invalid: AfterInvalid) -> StoreOptions {
    let default = Scheduling { after_invalid, ..Scheduling::SERIAL };
    let rules = SchedulingRules { default, ..SchedulingRules::default() };
    StoreOptions { scheduling: Arc::new(rules), ..db.options() }
}

fn open_halting(db: &Database) -> TestStore {
    db.open_with(options(db, AfterInvalid::Halt))
}

fn add(store: &TestStore, numbers: std::ops::RangeInclusive<u64>) {
    store.add_all(&numbers.map(|number| batch(SERVICE, number)).collect::<Vec<_>>());
}

fn make_invalid(store: &TestStore) {
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
}

fn decide_invalid(store: &TestStore, number: u64) {
    let decided = store.decide(&service(SERVICE), &id(number), 0, Decision::Invalid).unwrap();
    assert!(matches!(decided, ChangeOutcome::Applied { .. }), "{decided:?}");
}

fn end_following(store: &TestStore, number: u64) {
    let done = store.end_following(&service(SERVICE), &id(number), "they build on it").unwrap();
    assert!(matches!(done, ChangeOutcome::Applied { .. }), "{done:?}");
    store.free_all();
}

fn states(store: &TestStore, numbers: &[u64]) -> Vec<BatchState> {
    numbers.iter().map(|number| store.one(SERVICE, *number).progress.state).collect()
}

fn expired_batch_stops_the_service(db: &Database) {
    let store = open_halting(db);
    add(&store, 1..=2);
    let taken = store.take_up_to(1).remove(0);
    store.outcome(&taken, Outcome::Ambiguous);
    store.evidence(&taken, Evidence::Expired);
    assert_eq!(states(&store, &[1, 2]), [BatchState::Invalid, BatchState::New]);
    assert_eq!((numbers(&store.take_up_to(9)), halts(db)), (vec![], 1));
}

fn halts(db: &Database) -> i64 {
    db.number("select count(*) as number from halts")
}

fn invalid_batch_stops_the_service_until_it_is_continued(db: &Database) {
    let store = open_halting(db);
    add(&store, 1..=2);
    make_invalid(&store);
    add(&store, 3..=3);
    store.add_all(&[batch("a::c", 4)]);
    store.free_all();
    assert_eq!(numbers(&store.take_up_to(9)), [0; 0]);
    assert_eq!(store.commit_all_of("a::c"), [4], "another service continues");
    let [halt] = store.halts(None, 9).unwrap().try_into().unwrap();
    assert_eq!((halt.batch.batch_id, store.service_counts().unwrap().halted), (id(1), 1));
    store.continue_after(&service(SERVICE), &id(1), None).unwrap();
    assert_eq!([store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)], [[2], [3]]);
    assert_eq!((halts(db), db.scheduling_rows()), (0, 0));
}

fn stopped_batches_say_what_they_wait_for(db: &Database) {
    let store = open_halting(db);
    add(&store, 1..=3);
    make_invalid(&store);
    for number in [2, 3] {
        let created_at = store.one(SERVICE, number).created_at;
        let ahead = store.ahead(&service(SERVICE), &[created_at]).unwrap().pop().unwrap().unwrap();
        assert!(matches!(ahead.reason, WaitReason::Halt { .. }), "{ahead:?}");
        assert_eq!((ahead.head.clone().unwrap().batch_id, ahead.count), (id(1), number - 2));
        let details = store.details(&service(SERVICE), &id(number)).unwrap().unwrap();
        assert_eq!(details.ahead, Some(ahead), "both queries agree");
    }
}

fn what_follows_ends_in_steps(db: &Database) {
    const MANY: u64 = 600;
    let store = open_halting(db);
    add(&store, 1..=MANY);
    make_invalid(&store);
    store.end_following(&service(SERVICE), &id(1), "they build on it").unwrap();
    add(&store, MANY + 1..=MANY + 1);
    store.free_all();
    assert_eq!(states(&store, &[2, MANY / 2, MANY]), [BatchState::Invalid; 3]);
    let error = store.one(SERVICE, MANY).last_error.unwrap();
    assert!(error.contains("an operator ended what follows"), "{error}");
    assert_eq!(store.commit_all_of(SERVICE), [MANY + 1]);
    assert_eq!((halts(db), store.depth(&service(SERVICE)).unwrap()), (0, 0));
}

fn what_follows_a_waiting_batch_ends(db: &Database) {
    const MANY: u64 = 600;
    let store = open_halting(db);
    add(&store, 1..=MANY);
    decide_invalid(&store, 2);
    end_following(&store, 2);
    assert_eq!(
        states(&store, &[1, 3, MANY]),
        [BatchState::New, BatchState::Invalid, BatchState::Invalid]
    );
    add(&store, MANY + 1..=MANY + 1);
    assert_eq!([store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)], [[1], [MANY + 1]]);
    assert_eq!(halts(db), 0);
}

fn batches_before_a_waiting_one_continue(db: &Database) {
    let store = open_halting(db);
    add(&store, 1..=4);
    decide_invalid(&store, 3);
    assert_eq!([store.commit_all_of(SERVICE), store.commit_all_of(SERVICE)], [[1], [2]]);
    assert_eq!(numbers(&store.take_up_to(9)), [0; 0]);
}

fn command_follows_the_rules_of_the_server(db: &Database) {
    for after_invalid in AfterInvalid::ALL {
        let db = db.another();
        let server = db.open_with(options(&db, after_invalid));
        add(&server, 1..=2);
        server.worker();
        let command = db.open_for_command();
        decide_invalid(&command, 1);
        let (listed, next) = match after_invalid {
            AfterInvalid::Halt => (1, vec![]),
            AfterInvalid::Continue => (0, vec![2]),
        };
        assert_eq!(server.halts(None, 9).unwrap().len(), listed);
        assert_eq!(server.commit_all_of(SERVICE), next);
        if after_invalid == AfterInvalid::Halt {
            command.continue_after(&service(SERVICE), &id(1), None).unwrap();
            assert_eq!(server.commit_all_of(SERVICE), [2]);
        }
        assert_eq!((halts(&db), db.scheduling_rows()), (0, 0));
    }
}

fn policy_to_continue_records_nothing(db: &Database) {
    let store = db.open_with(options(db, AfterInvalid::Continue));
    add(&store, 1..=2);
    make_invalid(&store);
    assert_eq!((halts(db), store.commit_all_of(SERVICE)), (0, vec![2]));
}
