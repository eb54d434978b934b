//! Lists of withdrawals by state.

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{Decision, Event, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_withdrawals::{WithdrawalFilter, WithdrawalId, WithdrawalState, WithdrawalStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, by_program, happened, on_both, service};

on_both! {
    each_state_lists_its_withdrawals,
    states_can_be_combined_with_each_other,
    states_combine_with_other_filters_and_pages,
    retried_withdrawal_is_not_among_the_failed,
    decided_withdrawal_is_among_the_ended,
}

fn listed(store: &TestStore, filter: &WithdrawalFilter) -> Vec<WithdrawalId> {
    let page = store.withdrawals(filter, None, 100).unwrap().withdrawals;
    page.into_iter().map(|details| details.withdrawal.id).collect()
}

fn in_states(states: &[WithdrawalState]) -> WithdrawalFilter {
    WithdrawalFilter { states: states.iter().copied().collect(), ..WithdrawalFilter::default() }
}

/// Withdrawals of several accounts, one in each state except that two are scheduled.
fn one_in_each_state(store: &TestStore) -> [(WithdrawalState, Vec<u128>); 9] {
    use WithdrawalState::*;
    let accounts = ["a", "b", "c", "d", "e", "f", "g"];
    for (number, account) in (1..).zip(accounts) {
        store.schedule_all(&[withdrawal(account, number)]);
    }
    store.schedule_all(&[withdrawal("h", 8), withdrawal("h", 9)]);
    store.schedule_all(&[withdrawal("a", 10), withdrawal("a", 11), withdrawal("a", 12)]);
    store.commit_next("a");
    store.reject(&store.take_one("a"), "the pool is empty");
    let taken = store.take_one("b");
    let parked = Event::Outcome { attempt: taken.attempt, outcome: Outcome::Parked };
    let mut parked = happened(&taken, parked);
    parked.retry_at = Some(Timestamp::from_micros(i64::MAX / 2));
    store.record_one(parked);
    store.take_one("c");
    store.outcome(&store.take_one("d"), Outcome::Ambiguous);
    store.accept_and(&store.take_one("e"), LedgerStatus::Pending);
    store.accept_and(&store.take_one("f"), LedgerStatus::Valid);
    let held = store.take_one("g");
    store.outcome(&held, Outcome::Ambiguous);
    store.hold(&held, "no evidence");
    store.hold_batch(&service("a"), &withdrawal_id(12).batch_id(1), "look first").unwrap();
    [
        (Scheduled, vec![11, 9, 8]),
        (Parked, vec![2]),
        (Submitting, vec![3]),
        (InDoubt, vec![4]),
        (Pending, vec![5]),
        (Mined, vec![6]),
        (Held, vec![12, 7]),
        (Withdrawn, vec![1]),
        (Failed, vec![10]),
    ]
}

fn each_state_lists_its_withdrawals(db: &Database) {
    let store = db.open();
    for (state, numbers) in one_in_each_state(&store) {
        let page = store.withdrawals(&in_states(&[state]), None, 100).unwrap().withdrawals;
        assert!(page.iter().all(|details| WithdrawalState::of(details) == state), "{state}");
        let ids: Vec<_> = page.into_iter().map(|details| details.withdrawal.id).collect();
        assert_eq!(ids, Vec::from_iter(numbers.into_iter().map(withdrawal_id)), "{state}");
    }
}

fn states_can_be_combined_with_each_other(db: &Database) {
    let store = db.open();
    let all = one_in_each_state(&store);
    for first in 0..all.len() {
        for (length, part) in (0..=all.len() - first).map(|n| (n, &all[first..first + n])) {
            let mut expected: Vec<u128> = match length {
                0 => (1..=12).collect(),
                _ => part.iter().flat_map(|(_, numbers)| numbers).copied().collect(),
            };
            expected.sort_unstable_by(|a, b| b.cmp(a));
            let states: Vec<_> = part.iter().map(|(state, _)| *state).collect();
            let ids: Vec<_> = expected.into_iter().map(withdrawal_id).collect();
            assert_eq!(listed(&store, &in_states(&states)), ids, "{states:?}");
        }
    }
}

fn states_combine_with_other_filters_and_pages(db: &Database) {
    let store = db.open();
    for number in 1..=6 {
        let mut scheduled = withdrawal(ACCOUNT, number);
        scheduled.pool = if number % 2 == 0 { "0xeven" } else { "0xodd" }.to_owned();
        store.schedule_all(&[scheduled]);
        store.reject(&store.take_one(ACCOUNT), "no");
    }
    let even = WithdrawalFilter {
        pool: Some("0xeven".to_owned()),
        ..in_states(&[WithdrawalState::Failed])
    };
    let page = |before: Option<u128>| {
        let before = before.map(withdrawal_id);
        let page = store.withdrawals(&even, before.as_ref(), 2).unwrap().withdrawals;
        Vec::from_iter(page.into_iter().map(|details| details.withdrawal.id))
    };
    assert_eq!(page(None), [6, 4].map(withdrawal_id));
    assert_eq!(page(Some(4)), [withdrawal_id(2)]);
    assert_eq!(page(Some(2)), []);
    let other = WithdrawalFilter { beneficiary: Some("0xmember3".to_owned()), ..even.clone() };
    assert_eq!(listed(&store, &other), []);
    let open = WithdrawalFilter { states: [WithdrawalState::Scheduled].into(), ..even.clone() };
    assert_eq!(listed(&store, &open), []);
}

fn retried_withdrawal_is_not_among_the_failed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.reject(&store.take_one(ACCOUNT), "no");
    let failed = in_states(&[WithdrawalState::Failed]);
    assert_eq!(listed(&store, &failed), [withdrawal_id(1)]);
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(listed(&store, &failed), []);
    assert_eq!(listed(&store, &in_states(&[WithdrawalState::Scheduled])), [withdrawal_id(1)]);
    store.commit_next(ACCOUNT);
    assert_eq!(listed(&store, &in_states(&[WithdrawalState::Withdrawn])), [withdrawal_id(1)]);
}

fn decided_withdrawal_is_among_the_ended(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");
    let attempt = taken.attempt;
    store.decide(&taken.service_id, &taken.batch_id, attempt, Decision::Invalid).unwrap();
    assert_eq!(listed(&store, &in_states(&[WithdrawalState::Failed])), [withdrawal_id(1)]);
    assert_eq!(listed(&store, &in_states(&[WithdrawalState::Held])), []);
}
