//! How much is read for dependents does not depend on the number of open batches.

use std::sync::Arc;

use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus, NewBatch};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{AfterInvalid, RoundStore, ServiceShare, StrategyKind};
use grid_batch_store::{ClaimStore, Store, StoreOptions};

use super::{
    fixture::{self, SERVICE, address, number, rules},
    reads::{assert_as_many, count_reads_with},
};
use crate::{
    fixture::{Database, StoreExt, id, on_both, service},
    read_counts,
};

on_both! {
    reads_for_dependents_do_not_grow,
}

const FEW: u64 = 1_000;
const MANY: u64 = 10_000;

/// The first batch has dependents, and the next one is invalid and stops others.
const FIRST: u64 = 1;
const INVALID: u64 = 10;
const FOLLOWERS: u64 = 9;

/// The numbers of batches that are only open start here. Every tenth misses a transaction that no batch contains, and
/// the one after each of these depends on it.
const OPEN: u64 = 1_000;
const NEVER: u64 = 1_000_000;

fn reads_for_dependents_do_not_grow(db: &Database) {
    assert_as_many(measure(db, FEW), measure(&db.another(), MANY));
}

fn halting(db: &Database) -> StoreOptions {
    let mut rules = rules(StrategyKind::Parallel, 20);
    rules.default.after_invalid = AfterInvalid::Halt;
    StoreOptions { scheduling: Arc::new(rules), ..db.options() }
}

fn measure(db: &Database, open: u64) -> [(&'static str, u64); 5] {
    fill(db, open);
    let _dead_rows = read_counts::keep_dead_rows(db);
    let count = |work: &dyn Fn(&ClaimStore)| count_reads_with(db, halting(db), work);
    let last = OPEN + open;
    let end = count(&|claims| {
        let share = ServiceShare { service_id: service(SERVICE), batches: 20 };
        for taken in claims.take_round(&[share], &mut |_| true).unwrap().batches {
            match number(&taken) {
                FIRST => drop(claims.store().outcome(&taken, Outcome::Committed)),
                INVALID => {
                    claims.store().outcome(&taken, Outcome::Accepted);
                    let ended = claims.store().status(&taken, LedgerStatus::Invalid);
                    assert!(matches!(ended, ChangeOutcome::Applied { .. }), "{ended:?}");
                }
                _ => claims.give_back(&[taken]).unwrap(),
            }
        }
    });
    let waits = "select count(*) as number from waiting_batches
         where blocker_seq = (select min(seq) from batches)";
    assert_eq!(db.number(waits), 0, "nothing waits for the first batch any more");
    let dependency = count(&|claims| {
        let open = transaction(OPEN + 5);
        claims.store().add_all(&[depending(last + 1, "dd", &[open])]);
    });
    let missing = count(&|claims| {
        claims.store().add_all(&[depending(last + 2, "dd", &[transaction(last + 3)])]);
    });
    let arrival = count(&|claims| {
        claims.store().add_all(&[writing(last + 3, "ee")]);
        free_all(claims.store());
    });
    let misses = "select count(*) as number from waiting_batches where position is null
         and batch_seq = (select seq from batches order by seq desc limit 1 offset 1)";
    assert_eq!(db.number(misses), 0, "the transaction has arrived");
    let halt = count(&|claims| {
        let ended = claims.store().end_following(&service(SERVICE), &id(INVALID), "a test");
        assert!(matches!(ended, Ok(ChangeOutcome::Applied { .. })), "{ended:?}");
        free_all(claims.store());
    });
    let store = db.open_with(halting(db));
    for follower in 1..FOLLOWERS {
        let batch = store.one(SERVICE, INVALID + follower);
        assert_eq!(batch.progress.state, BatchState::Invalid, "{batch:?}");
    }
    [
        ("an end with dependents", end),
        ("a dependency", dependency),
        ("a missing transaction", missing),
        ("its arrival", arrival),
        ("a halt", halt),
    ]
}

fn writing(number: u64, address: &str) -> NewBatch {
    NewBatch { transaction_ids: vec![transaction(number)], ..fixture::writing(number, address) }
}

fn depending(number: u64, address: &str, dependencies: &[ItemId]) -> NewBatch {
    let batch = fixture::depending(SERVICE, number, address, dependencies);
    NewBatch { transaction_ids: vec![transaction(number)], ..batch }
}

/// The transaction of a batch. Like signatures, they are spread over the index.
fn transaction(number: u64) -> ItemId {
    id(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Stores the batches that the test is about, and this many others.
fn fill(db: &Database, open: u64) {
    let first = [writing(FIRST, "aa"), writing(INVALID, "bb")];
    let followers = (1..FOLLOWERS).flat_map(|follower| {
        let own = address(&format!("cc{follower:02}"));
        let dependent = depending(FIRST + follower, &own, &[transaction(FIRST)]);
        [dependent, writing(INVALID + follower, "bb")]
    });
    let mut batches: Vec<NewBatch> = first.into_iter().chain(followers).collect();
    batches.extend((OPEN..OPEN + open).map(|number| {
        let own = address(&format!("00{:06x}", number * 7_919 % 10_000));
        match number % 10 {
            0 => depending(number, &own, &[transaction(number + NEVER)]),
            1 => depending(number, &own, &[transaction(number - 2)]),
            _ => writing(number, &own),
        }
    }));
    let store = db.open_with(halting(db));
    for list in batches.chunks(1_000) {
        store.add_all(list);
        read_counts::analyze(db);
    }
    drop(store);
    read_counts::remove_dead_rows(db);
}

fn free_all(store: &Store) {
    while store.free_dependents(1_000).unwrap().more || store.dependents_wait() {}
}
