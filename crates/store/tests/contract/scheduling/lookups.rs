//! Which missing transactions the ledger is asked about, and when.

use std::{collections::BTreeSet, time::Duration};

use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, NewBatch, SignerId};
use grid_batch_core::evidence::MissingTransactionStore;

use super::fixture::{SERVICE, ScheduledExt, depending, transaction_of, writing};
use crate::fixture::{Database, StoreExt, TestStore, on_both};

on_both! {
    signers_take_turns,
    new_transactions_come_before_repeated_ones,
    turns_continue_with_the_next_signer,
    pauses_between_lookups_grow,
    unanswered_lookups_are_repeated_soon,
    lookups_that_wait_are_counted,
    lookups_of_ended_batches_are_forgotten,
    many_that_the_ledger_has_are_freed_in_parts,
    new_batch_does_not_wait_for_many_dependents,
}

const PAUSE: Duration = Duration::from_secs(2);

fn signer(number: u8) -> SignerId {
    SignerId::from_bytes([number; SignerId::BYTES])
}

/// A batch of a signer that depends on a transaction that does not arrive.
fn missing(by: u8, number: u64) -> NewBatch {
    let batch = depending(SERVICE, number, &format!("{number:08x}"), &[made_up(number)]);
    NewBatch { signer: Some(signer(by)), ..batch }
}

fn made_up(number: u64) -> ItemId {
    transaction_of(number + 500_000)
}

fn ask(store: &TestStore, count: usize) -> BTreeSet<ItemId> {
    store.worker_of_all().missing_transactions(PAUSE, count).unwrap().into_iter().collect()
}

/// A store in which one signer misses many transactions.
fn with_hostile_signer(db: &Database) -> TestStore {
    let store = db.open_parallel();
    let hostile: Vec<NewBatch> = (1_000..1_300).map(|number| missing(1, number)).collect();
    store.add_all(&hostile);
    store
}

fn signers_take_turns(db: &Database) {
    let store = with_hostile_signer(db);
    store.add_all(&[missing(2, 1), missing(2, 2), missing(3, 3)]);
    let asked = ask(&store, 6);
    assert_eq!(asked.len(), 6);
    for number in 1..=3 {
        assert!(asked.contains(&made_up(number)), "{number}");
    }
}

fn new_transactions_come_before_repeated_ones(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[missing(1, 1), missing(1, 2)]);
    assert_eq!(ask(&store, 10).len(), 2);
    db.later(3_600);
    store.add_all(&[missing(1, 3)]);
    assert_eq!(ask(&store, 1), [made_up(3)].into());
}

fn turns_continue_with_the_next_signer(db: &Database) {
    let store = db.open_parallel();
    let each: Vec<NewBatch> = (1..=9).map(|by| missing(by, u64::from(by))).collect();
    store.add_all(&each);
    let first = ask(&store, 5);
    let second = ask(&store, 5);
    assert_eq!((first.len(), second.len()), (5, 4));
    assert!(first.is_disjoint(&second));
}

fn pauses_between_lookups_grow(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[missing(1, 1)]);
    let mut pause = PAUSE;
    for _ in 0..8 {
        assert_eq!(ask(&store, 10).len(), 1);
        db.later(pause.as_secs() - 1);
        assert_eq!(ask(&store, 10), BTreeSet::new());
        db.later(1);
        pause = (2 * pause).min(30 * PAUSE);
    }
}

fn unanswered_lookups_are_repeated_soon(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[missing(1, 1), missing(1, 2)]);
    for _ in 0..5 {
        assert_eq!(ask(&store, 10).len(), 2);
        db.later(60);
    }
    assert_eq!(ask(&store, 10).len(), 2);
    store.worker_of_all().look_up_again(&[made_up(2)], PAUSE).unwrap();
    db.later(PAUSE.as_secs());
    assert_eq!(ask(&store, 10), [made_up(2)].into());
}

fn lookups_that_wait_are_counted(db: &Database) {
    let store = db.open_parallel();
    let lag = || store.worker_of_all().lookup_lag().unwrap();
    assert_eq!((lag().waiting, lag().longest), (0, Duration::ZERO));
    store.add_all(&[missing(1, 1), missing(1, 2), missing(2, 1_001)]);
    db.later(7);
    assert_eq!((lag().waiting, lag().longest), (3, Duration::from_secs(7)));
    assert_eq!(ask(&store, 2).len(), 2);
    assert_eq!(lag().waiting, 1);
    assert_eq!(ask(&store, 2).len(), 1);
    assert_eq!((lag().waiting, lag().longest), (0, Duration::ZERO));
}

fn lookups_of_ended_batches_are_forgotten(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[missing(1, 1), missing(2, 2)]);
    let ended = crate::fixture::id(1);
    let service = crate::fixture::service(SERVICE);
    store.decide(&service, &ended, 0, grid_batch_core::batches::Decision::Invalid).unwrap();
    assert_eq!(ask(&store, 10), [made_up(2)].into());
    assert_eq!(db.number("select count(*) as number from transaction_lookups"), 1);
}

/// Stores more batches that depend on one transaction than are freed at once.
fn many_dependents(db: &Database) -> (TestStore, u64) {
    const MANY: u64 = 700;
    let store = db.open_scheduled(grid_batch_core::queue::StrategyKind::Parallel, 10);
    let batches: Vec<NewBatch> = (1_000..1_000 + MANY)
        .map(|number| depending(SERVICE, number, &format!("{number:08x}"), &[transaction_of(1)]))
        .collect();
    store.add_all(&batches);
    (store, MANY)
}

const FREE: &str = "select count(*) as number from waiting_batches
     where position is not null and blocker_seq is null";

fn many_that_the_ledger_has_are_freed_in_parts(db: &Database) {
    let (store, many) = many_dependents(db);
    let mut committed = 0;
    while committed < many {
        assert_eq!(
            ask(&store, 10),
            [transaction_of(1)].into(),
            "the ledger is asked again at once"
        );
        store.found_at_ledger(&[transaction_of(1)]).unwrap();
        let free = db.number(FREE);
        assert!(free < 300, "{free} are free");
        loop {
            let taken = store.take_up_to(10);
            store.commit(&taken);
            committed += taken.len() as u64;
            if taken.is_empty() {
                break;
            }
        }
    }
    assert_eq!(store.one(SERVICE, 1_000).progress.state, BatchState::Committed);
}

fn new_batch_does_not_wait_for_many_dependents(db: &Database) {
    let (store, _) = many_dependents(db);
    store.add_all(&[writing(1, "aa")]);
    store.free_all();
    store.commit(&store.take_up_to(10));
    store.free_all();
    store.add_all(&[writing(2, "bb")]);
    let mut before = 0;
    while store.one(SERVICE, 2).progress.state != BatchState::Committed {
        let taken = store.take_up_to(10);
        assert!(!taken.is_empty());
        before += taken.len();
        assert!(before < 500, "{before} dependents went before the new batch");
        store.commit(&taken);
        store.free_all();
    }
}
