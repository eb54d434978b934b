//! Limits on withdrawals from a pool: the largest amount, and the sum of a day.

use std::{sync::Arc, thread};

use grid_batch_core::batches::Decision;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{Store, StoreOptions};
use grid_batch_withdrawals::{
    Amount, FailedFilter, FailedWithdrawals, PaymentLimitError, PaymentLimits, RetryOutcome,
    ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalStore,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, by_program, on_both};

on_both! {
    amount_above_the_limit_is_refused,
    sum_of_a_day_is_limited,
    amounts_of_one_call_are_summed,
    concurrent_requests_do_not_exceed_the_sum,
    concurrent_requests_of_two_accounts_stay_below_it,
    repeated_request_counts_once,
    failed_withdrawal_counts_no_longer,
    withdrawal_that_is_decided_invalid_counts_no_longer,
    retry_counts_once_and_is_limited,
    bulk_retry_checks_each_and_its_dry_run_agrees,
    amounts_stop_counting_after_a_day,
    sums_have_more_than_128_bits,
    old_sums_are_removed,
}

const POOL: &str = "0xpool";
const DAY: u64 = 24 * 60 * 60;
const STEP: u64 = 10 * 60;

fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

fn open(db: &Database, limits: PaymentLimits) -> TestStore {
    db.open_with(StoreOptions { payment_limits: Arc::new(limits), ..db.options() })
}

fn day_limit(db: &Database, limit: &str) -> TestStore {
    let day = [(POOL.to_owned(), amount(limit))].into();
    open(db, PaymentLimits { day, ..PaymentLimits::default() })
}

fn payment(number: u128, amount: &str) -> Withdrawal {
    Withdrawal { amount: amount.to_owned(), ..withdrawal(ACCOUNT, number) }
}

fn schedule(store: &Store, new: &Withdrawal) -> Result<ScheduleOutcome, WithdrawalConflict> {
    store.schedule(std::slice::from_ref(new)).unwrap().remove(0)
}

/// What is left of the limit, according to the refusal of this withdrawal.
#[track_caller]
fn left_for(store: &Store, refused: &Withdrawal) -> String {
    match schedule(store, refused) {
        Err(WithdrawalConflict::PaymentLimit(PaymentLimitError::Day { left, .. })) => {
            left.to_string()
        }
        other => panic!("{other:?}"),
    }
}

fn sum(store: &Store) -> String {
    store.pool_sums(&[POOL]).unwrap().remove(0).amount.to_string()
}

fn amount_above_the_limit_is_refused(db: &Database) {
    let payment_limit = [(POOL.to_owned(), amount("100"))].into();
    let limits = PaymentLimits { payment: payment_limit, ..PaymentLimits::default() };
    let store = open(db, limits);
    store.schedule_all(&[payment(1, "100")]);
    let refused = schedule(&store, &payment(2, "101")).unwrap_err();
    assert!(refused.to_string().contains("limit of 100 "), "{refused}");
    assert_eq!(store.withdrawal(&withdrawal_id(2)).unwrap(), None);
    let elsewhere = Withdrawal { pool: "0xother".to_owned(), ..payment(3, "101") };
    store.schedule_all(&[elsewhere]);
    assert_eq!((sum(&store).as_str(), store.depths(None, 9).unwrap()[0].open), ("100", 2));
}

fn sum_of_a_day_is_limited(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "60")]);
    db.later(STEP);
    assert_eq!(left_for(&store, &payment(2, "41")), "40");
    store.schedule_all(&[payment(2, "40")]);
    assert_eq!(left_for(&store, &payment(3, "1")), "0");
}

fn amounts_of_one_call_are_summed(db: &Database) {
    let store = day_limit(db, "100");
    let requested = [payment(1, "60"), payment(2, "60"), payment(3, "40")];
    let stored: Vec<bool> = store.schedule(&requested).unwrap().iter().map(Result::is_ok).collect();
    assert_eq!((stored, sum(&store).as_str()), (vec![true, false, true], "100"));
}

fn concurrent_requests_do_not_exceed_the_sum(db: &Database) {
    let store = day_limit(db, "5");
    let requested: Vec<Withdrawal> = (0..12).map(|number| payment(number, "1")).collect();
    assert_eq!(count_stored(&store, &requested), 5);
    assert_eq!(sum(&store), "5");
}

fn concurrent_requests_of_two_accounts_stay_below_it(db: &Database) {
    let store = day_limit(db, "5");
    let requested: Vec<Withdrawal> = (0..12)
        .map(|number| {
            let account = if number % 2 == 0 { "a" } else { "b" };
            Withdrawal { amount: "1".to_owned(), ..withdrawal(account, number) }
        })
        .collect();
    assert_eq!(count_stored(&store, &requested), 5);
    assert_eq!(sum(&store), "5");
}

/// Schedules all of them at the same time, and returns how many were stored.
fn count_stored(store: &Store, requested: &[Withdrawal]) -> usize {
    thread::scope(|scope| {
        let callers: Vec<_> =
            requested.iter().map(|new| scope.spawn(|| schedule(store, new))).collect();
        callers.into_iter().filter_map(|caller| caller.join().unwrap().ok()).count()
    })
}

fn repeated_request_counts_once(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "60")]);
    let again = schedule(&store, &payment(1, "60"));
    assert_eq!((again, sum(&store).as_str()), (Ok(ScheduleOutcome::AlreadyStored), "60"));
}

fn failed_withdrawal_counts_no_longer(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "60"), payment(2, "40")]);
    db.later(STEP);
    store.reject(&store.take_one(ACCOUNT), "the pool is empty");
    assert_eq!(left_for(&store, &payment(3, "61")), "60");
    store.commit_next(ACCOUNT);
    assert_eq!(left_for(&store, &payment(3, "61")), "60");
    store.schedule_all(&[payment(3, "60")]);
}

fn withdrawal_that_is_decided_invalid_counts_no_longer(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "60"), payment(2, "40")]);
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "nothing can be proved");
    store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Invalid).unwrap();
    assert_eq!(sum(&store), "40");
}

fn retry_counts_once_and_is_limited(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "60")]);
    store.reject(&store.take_one(ACCOUNT), "no");
    let retried = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });
    assert_eq!(sum(&store), "60");

    store.reject(&store.take_one(ACCOUNT), "no");
    store.schedule_all(&[payment(2, "50")]);
    let refused = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert!(matches!(refused, RetryOutcome::PaymentLimit(_)), "{refused:?}");
    assert_eq!((store.details_of(1).generation, sum(&store).as_str()), (2, "50"));
}

fn bulk_retry_checks_each_and_its_dry_run_agrees(db: &Database) {
    let store = db.open();
    for (number, amount) in (1..).zip(["4", "5", "6", "7", "1", "8"]) {
        store.schedule_all(&[payment(number, amount)]);
        store.reject(&store.take_one(ACCOUNT), "no");
    }
    let store = day_limit(db, "10");
    let all = FailedFilter::default();
    let found = all.find(&*store, 9).unwrap();
    let numbers = |found: &FailedWithdrawals| {
        let retried = found.withdrawals.iter().map(|failed| failed.withdrawal.id);
        let refused = found.refused.iter().map(|(failed, _)| failed.withdrawal.id);
        (Vec::from_iter(retried), Vec::from_iter(refused))
    };
    let expected = ([1, 2, 5].map(withdrawal_id).into(), [3, 4, 6].map(withdrawal_id).into());
    assert_eq!((numbers(&found), found.has_more), (expected, false));
    let reasons: Vec<String> = found.refused.iter().map(|(_, error)| error.to_string()).collect();
    assert!(reasons[0].contains("has 1 left") && reasons[2].contains("has 0 left"), "{reasons:?}");
    assert_eq!(sum(&store), "0", "nothing changes");
    assert!(all.find(&*store, 3).unwrap().has_more);
    assert_eq!(all.retry(&*store, 9, &by_program()).unwrap(), found);
    assert_eq!(sum(&store), "10");
    let again = all.find(&*store, 9).unwrap();
    assert_eq!((again.withdrawals.len(), again.refused.len(), again.has_more), (0, 3, false));
}

fn amounts_stop_counting_after_a_day(db: &Database) {
    let store = day_limit(db, "100");
    store.schedule_all(&[payment(1, "100")]);
    db.later(DAY);
    assert_eq!(left_for(&store, &payment(2, "1")), "0");
    db.later(STEP);
    store.schedule_all(&[payment(2, "100")]);
}

fn sums_have_more_than_128_bits(db: &Database) {
    let half = "5".repeat(77);
    let store = day_limit(db, &format!("1{}", "1".repeat(77)));
    store.schedule_all(&[payment(1, &half), payment(2, &half)]);
    assert_eq!(left_for(&store, &payment(3, "2")), "1");
}

fn old_sums_are_removed(db: &Database) {
    let store = db.open();
    for number in 0..4 {
        store.schedule_all(&[payment(number, "1")]);
        db.later(DAY / 2);
    }
    let rows = db.number("select count(*) as number from payment_sums");
    assert_eq!((rows, sum(&store).as_str()), (3, "2"));
}
