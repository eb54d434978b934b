use std::thread;

use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    AheadCount, FailedFilter, FailedWithdrawals, Withdrawal, WithdrawalId,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, TestStore, by_program, on_both, service};

const OTHER_ACCOUNT: &str = "eip155:1:0x0b";

on_both! {
    failed_withdrawals_are_found_in_their_order,
    filters_select_failed_withdrawals,
    failed_withdrawals_are_retried_up_to_the_limit,
    concurrent_bulk_retries_retry_each_once,
    more_than_a_page_is_searched,
}

fn numbers(found: &FailedWithdrawals) -> Vec<WithdrawalId> {
    found.withdrawals.iter().map(|failed| failed.withdrawal.id).collect()
}

fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<WithdrawalId> {
    numbers.into_iter().map(withdrawal_id).collect()
}

/// Withdrawals that have failed for these reasons, numbered from 1.
fn fail(store: &TestStore, reasons: &[&str]) {
    for (number, reason) in (1..).zip(reasons) {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        store.reject(&store.take_one(ACCOUNT), reason);
    }
}

fn failed_withdrawals_are_found_in_their_order(db: &Database) {
    let store = db.open();
    assert_eq!(FailedFilter::default().find(&*store, 9).unwrap(), FailedWithdrawals::default());
    fail(&store, &["no contract", "not the owner"]);
    let failed_at = db.now();
    store.schedule_all(&[withdrawal(ACCOUNT, 3)]);
    let found = FailedFilter::default().find(&*store, 9).unwrap();
    assert_eq!((numbers(&found), found.has_more), (ids(1..=2), false));
    let second = &found.withdrawals[1];
    assert_eq!((&*second.fail_reason, second.failed_at), ("not the owner", failed_at));
    assert_eq!(second.withdrawal, withdrawal(ACCOUNT, 2));
    let first = FailedFilter::default().find(&*store, 1).unwrap();
    assert_eq!((numbers(&first), first.has_more), (ids([1]), true));
}

fn filters_select_failed_withdrawals(db: &Database) {
    let store = db.open();
    fail(&store, &["there is no contract at the pool", "not the owner"]);
    db.later(60);
    let since = db.now();
    let other = Withdrawal { pool: "0xother".to_owned(), ..withdrawal(OTHER_ACCOUNT, 3) };
    store.schedule_all(&[other]);
    store.reject(&store.take_one(OTHER_ACCOUNT), "there is no contract at the pool");
    let all = FailedFilter::default;
    for (filter, expected) in [
        (FailedFilter { pool: Some("0xpool".to_owned()), ..all() }, vec![1, 2]),
        (FailedFilter { service_id: Some(service(OTHER_ACCOUNT)), ..all() }, vec![3]),
        (FailedFilter { failed_since: Some(since), ..all() }, vec![3]),
        (FailedFilter { reason_contains: Some("no contract".to_owned()), ..all() }, vec![1, 3]),
        (FailedFilter { reason_contains: Some("No contract".to_owned()), ..all() }, vec![]),
        (
            FailedFilter {
                pool: Some("0xpool".to_owned()),
                reason_contains: Some("no contract".to_owned()),
                ..all()
            },
            vec![1],
        ),
    ] {
        assert_eq!(numbers(&filter.find(&*store, 9).unwrap()), ids(expected), "{filter:?}");
    }
}

fn failed_withdrawals_are_retried_up_to_the_limit(db: &Database) {
    let store = db.open();
    fail(&store, &["no contract"; 3]);
    let filter =
        FailedFilter { reason_contains: Some("no contract".to_owned()), ..Default::default() };
    let retried = filter.retry(&*store, 2, &by_program()).unwrap();
    assert_eq!((numbers(&retried), retried.has_more), (ids(1..=2), true));
    let retried = filter.retry(&*store, 2, &by_program()).unwrap();
    assert_eq!((numbers(&retried), retried.has_more), (ids([3]), false));
    assert_eq!(filter.retry(&*store, 2, &by_program()).unwrap(), FailedWithdrawals::default());
    for number in 1..=3 {
        let details = store.details_of(number);
        assert_eq!(
            (details.generation, details.ahead),
            (2, Some(AheadCount::exactly(number as u64 - 1)))
        );
        assert_eq!(details.batch.progress.state, BatchState::New);
    }
}

fn concurrent_bulk_retries_retry_each_once(db: &Database) {
    let store = db.open();
    fail(&store, &["no"; 5]);
    let retried: Vec<Vec<WithdrawalId>> = thread::scope(|scope| {
        let retry = || numbers(&FailedFilter::default().retry(&*store, 9, &by_program()).unwrap());
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(retry)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let mut retried: Vec<WithdrawalId> = retried.concat();
    retried.sort_unstable();
    assert_eq!(retried, ids(1..=5));
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 5);
}

fn more_than_a_page_is_searched(db: &Database) {
    let store = db.open();
    let accounts: Vec<String> = (1..=502).map(|number| format!("eip155:1:0x{number:04}")).collect();
    let all: Vec<Withdrawal> =
        (1..).zip(&accounts).map(|(number, account)| withdrawal(account, number)).collect();
    store.schedule_all(&all);
    for (number, account) in (1..).zip(&accounts) {
        let reason = if number > 500 { "the last" } else { "no" };
        store.reject(&store.take_one(account), reason);
    }
    let filter = FailedFilter { reason_contains: Some("last".to_owned()), ..Default::default() };
    assert_eq!(numbers(&filter.find(&*store, 9).unwrap()), ids(501..=502));
}
