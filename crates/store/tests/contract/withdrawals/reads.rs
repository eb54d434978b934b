//! How much requests read from the database does not depend on the number of waiting withdrawals.

use grid_batch_core::batches::Decision;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::StoreOptions;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalState, WithdrawalStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, is_stored, withdrawal, withdrawal_id};
use crate::{
    fixture::{Database, StoreExt, TestStore, on_both},
    read_counts,
};

on_both! {
    reads_do_not_grow_with_the_backlog,
}

/// More than the limit for counting those ahead.
const FEW: u128 = 1_500;
const MANY: u128 = 12_000;

/// The factor by which reads may grow with a longer queue, because indexes get deeper.
const MARGIN: f64 = 1.3;
const ALLOWANCE: u64 = 40;

/// One request.
type Request = fn(&TestStore, u128);

const REQUESTS: [(&str, Request); 6] = [
    ("POST", |store, last| {
        let answers = store.schedule(&[withdrawal(ACCOUNT, last + 1)]).unwrap();
        assert!(is_stored(&answers[0]));
    }),
    ("POST again", |store, last| {
        assert!(store.schedule(&[withdrawal(ACCOUNT, last)]).unwrap()[0].is_ok());
    }),
    ("GET one", |store, last| {
        assert!(store.withdrawal(&withdrawal_id(last)).unwrap().unwrap().ahead.unwrap().more);
    }),
    ("list", |store, _| expect_page(store, &WithdrawalFilter::default(), 10)),
    ("list of the failed ones of a pool", |store, _| {
        let pool = Some("0xpool".to_owned());
        let states = [WithdrawalState::Failed].into();
        expect_page(store, &WithdrawalFilter { pool, states, ..WithdrawalFilter::default() }, 3);
    }),
    ("list of those that are held or scheduled", |store, last| {
        let states = [WithdrawalState::Held, WithdrawalState::Scheduled].into();
        let filter = WithdrawalFilter { states, ..WithdrawalFilter::default() };
        let before = withdrawal_id(last - 50);
        assert_eq!(store.withdrawals(&filter, Some(&before), 10).unwrap().withdrawals.len(), 10);
    }),
];

fn expect_page(store: &TestStore, filter: &WithdrawalFilter, length: usize) {
    assert_eq!(store.withdrawals(filter, None, 10).unwrap().withdrawals.len(), length);
}

fn reads_do_not_grow_with_the_backlog(db: &Database) {
    fail_three(db);
    schedule(db, 4..=FEW);
    let before = count_reads(db, FEW);
    // A POST has added the one after the last.
    schedule(db, FEW + 2..=MANY);
    let after = count_reads(db, MANY);
    println!("reads with {FEW} waiting: {before:?}; with {MANY}: {after:?}");
    for ((name, _), (before, after)) in REQUESTS.into_iter().zip(before.into_iter().zip(after)) {
        let limit = (before as f64 * MARGIN) as u64 + ALLOWANCE;
        assert!(after <= limit, "{name} read {before}, and with {MANY} waiting {after}");
    }
}

fn fail_three(db: &Database) {
    let store = db.open();
    for number in 1..=3 {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        let taken = store.take_one(ACCOUNT);
        store.outcome(&taken, Outcome::Ambiguous);
        store.hold(&taken, "no evidence");
        store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Invalid).unwrap();
    }
}

fn schedule(db: &Database, numbers: impl IntoIterator<Item = u128>) {
    let all: Vec<_> = numbers.into_iter().map(|number| withdrawal(ACCOUNT, number)).collect();
    db.open().schedule_all(&all);
    read_counts::remove_dead_rows(db);
}

/// How much each request reads with a store that was just opened.
fn count_reads(db: &Database, last: u128) -> [u64; REQUESTS.len()] {
    let _dead_rows = read_counts::keep_dead_rows(db);
    REQUESTS.map(|(_, request)| {
        read_counts::count(db, || {
            let store = db.open_with(StoreOptions { connections: 1, ..db.options() });
            request(&store, last);
        })
    })
}
