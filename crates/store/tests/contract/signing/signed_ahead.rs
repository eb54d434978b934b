//! How withdrawals that were signed ahead are listed and counted.

use grid_batch_core::batches::{BatchState, Decision, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    ClosedNonce, NonceOutcome, SigningStore, WithdrawalFilter, WithdrawalId, WithdrawalState,
    WithdrawalStore,
};

use crate::{
    fixture::{Database, StoreExt, TestStore, by_program, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal, withdrawal_id},
};

on_both! {
    head_that_was_signed_ahead_is_listed_as_pending,
    those_behind_a_retried_head_are_listed_as_pending,
    withdrawals_behind_a_head_with_a_higher_nonce_are_listed,
    signed_ahead_and_held_are_counted_as_such,
    closed_nonce_of_an_ended_withdrawal_is_settled,
    those_paid_ahead_end_with_the_one_before_them,
    one_that_is_held_waits_for_its_release,
    one_that_failed_ahead_waits_for_its_turn,
}

fn accept_next(store: &TestStore) -> TakenBatch {
    let (taken, _) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Accepted);
    taken
}

/// Signs and sends the next withdrawals after an accepted one, with these nonces.
fn send_ahead(store: &TestStore, head: &TakenBatch, nonces: impl Iterator<Item = u64>) {
    let following = store.following_payments(&head.service_id, &head.batch_id, 10);
    let all: Vec<_> = nonces.map(|nonce| signed(nonce, 100)).collect();
    let following = following.unwrap().unwrap();
    assert!(store.sign_following(&following, all.clone()).unwrap());
    for signed in all {
        store.mark_sent(&signed.hash, None).unwrap();
    }
}

fn listed(store: &TestStore, state: WithdrawalState) -> Vec<WithdrawalId> {
    let filter = WithdrawalFilter { states: [state].into(), ..WithdrawalFilter::default() };
    let page = store.withdrawals(&filter, None, 10).unwrap().withdrawals;
    assert!(page.iter().all(|details| WithdrawalState::of(details) == state), "{page:?}");
    page.into_iter().map(|details| details.withdrawal.id).collect()
}

fn head_that_was_signed_ahead_is_listed_as_pending(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let first = accept_next(&store);
    send_ahead(&store, &first, 1..=1);
    store.status(&first, LedgerStatus::Committed);
    assert_eq!(listed(&store, WithdrawalState::Pending), [withdrawal_id(2)]);
    assert_eq!(listed(&store, WithdrawalState::Scheduled), [withdrawal_id(3)]);
}

/// Decides as an operator that an accepted withdrawal failed, and schedules it again. It keeps its nonce, because its
/// transaction may still be mined.
fn fail_and_retry(store: &TestStore, taken: &TakenBatch, id: WithdrawalId) {
    decide_invalid(store, taken);
    store.retry_withdrawal(&id, &by_program()).unwrap();
}

fn decide_invalid(store: &TestStore, taken: &TakenBatch) {
    store.hold(taken, "nothing can be proved");
    let TakenBatch { service_id, batch_id, attempt, .. } = taken;
    store.decide(service_id, batch_id, *attempt, Decision::Invalid).unwrap();
}

fn those_behind_a_retried_head_are_listed_as_pending(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let first = accept_next(&store);
    fail_and_retry(&store, &first, withdrawal_id(1));
    store.schedule_all(&[withdrawal(ACCOUNT, 2)]);
    let retried = store.take_one(ACCOUNT);
    store.outcome(&retried, Outcome::Accepted);
    send_ahead(&store, &retried, 1..=1);
    assert_eq!(listed(&store, WithdrawalState::Pending), [withdrawal_id(2), withdrawal_id(1)]);
    assert_eq!(listed(&store, WithdrawalState::Scheduled), []);
}

/// Another transaction has used the nonce of the head, which gets a nonce after those that were signed ahead.
fn withdrawals_behind_a_head_with_a_higher_nonce_are_listed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let first = accept_next(&store);
    send_ahead(&store, &first, 1..=2);
    store.close_as(ACCOUNT, 0, NonceOutcome::UsedElsewhere);
    store.close_as(ACCOUNT, 1, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    store.evidence(&first, Evidence::Repeatable);
    let again = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&again, 0).unwrap().signed.nonce, 3);
    store.outcome(&again, Outcome::Accepted);
    assert_eq!(listed(&store, WithdrawalState::Mined), [withdrawal_id(2)]);
    assert_eq!(listed(&store, WithdrawalState::Pending), [withdrawal_id(3), withdrawal_id(1)]);
}

fn signed_ahead_and_held_are_counted_as_such(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3, 4, 5].map(|number| withdrawal(ACCOUNT, number)));
    let first = accept_next(&store);
    send_ahead(&store, &first, 1..=2);
    for number in [3, 5] {
        let batch_id = withdrawal_id(number).batch_id(1);
        store.hold_batch(&service(ACCOUNT), &batch_id, "look first").unwrap();
    }
    let counts = || {
        let queue = store.gas_admin_queues(&[service(ACCOUNT)]).unwrap().remove(0);
        [queue.open, queue.waiting, queue.held, queue.in_progress]
    };
    assert_eq!(counts(), [5, 1, 2, 2]);
    store.status(&first, LedgerStatus::Committed);
    assert_eq!(counts(), [4, 1, 2, 1]);
}

fn closed_nonce_of_an_ended_withdrawal_is_settled(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    decide_invalid(&store, &accept_next(&store));
    let second = accept_next(&store);
    let has_unsettled = || {
        let following = store.following_payments(&second.service_id, &second.batch_id, 10);
        following.unwrap().unwrap().has_unsettled
    };
    assert!(has_unsettled());
    let outcome = Some(NonceOutcome::Withdrawn { withdrawal_id: "7".to_owned() });
    let closed = ClosedNonce { nonce: 0, note: "withdrawn".to_owned(), outcome, transaction: None };
    store.close_nonces(&service(ACCOUNT), &[closed]).unwrap();
    assert!(!has_unsettled());
}

fn withdrawn(nonce: u64) -> NonceOutcome {
    NonceOutcome::Withdrawn { withdrawal_id: nonce.to_string() }
}

fn those_paid_ahead_end_with_the_one_before_them(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3, 4].map(|number| withdrawal(ACCOUNT, number)));
    let first = accept_next(&store);
    send_ahead(&store, &first, 1..=3);
    for nonce in 0..=2 {
        store.close_as(ACCOUNT, nonce, withdrawn(nonce));
    }
    store.status(&first, LedgerStatus::Committed);
    assert_eq!(listed(&store, WithdrawalState::Withdrawn), [3, 2, 1].map(withdrawal_id));
    let batch_ids = [2, 3].map(|number| withdrawal_id(number).batch_id(1));
    let ended = batch_ids.map(|id| (id, BatchState::Committed));
    assert_eq!(store.take_ended_waiting(), ended);
    for batch_id in batch_ids {
        let details = store.details(&service(ACCOUNT), &batch_id).unwrap().unwrap();
        assert_eq!(details.batch.progress.attempts, 1);
        assert!(details.batch.submitted_at.is_some());
    }
    let next = store.take_one(ACCOUNT);
    assert_eq!(next.batch_id, withdrawal_id(4).batch_id(1));
}

/// Three withdrawals of which the first is under way and the second had this end before its turn.
fn end_second_ahead(store: &TestStore, second: NonceOutcome) -> TakenBatch {
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let first = accept_next(store);
    send_ahead(store, &first, 1..=2);
    for (nonce, outcome) in [(0, withdrawn(0)), (1, second), (2, withdrawn(2))] {
        store.close_as(ACCOUNT, nonce, outcome);
    }
    first
}

fn one_that_is_held_waits_for_its_release(db: &Database) {
    let store = db.open();
    let first = end_second_ahead(&store, withdrawn(1));
    store.hold_batch(&service(ACCOUNT), &withdrawal_id(2).batch_id(1), "look first").unwrap();
    store.status(&first, LedgerStatus::Committed);
    assert_eq!(listed(&store, WithdrawalState::Withdrawn), [withdrawal_id(1)]);
}

fn one_that_failed_ahead_waits_for_its_turn(db: &Database) {
    let store = db.open();
    let first = end_second_ahead(&store, NonceOutcome::Reverted);
    store.status(&first, LedgerStatus::Committed);
    assert_eq!(listed(&store, WithdrawalState::Withdrawn), [withdrawal_id(1)]);
    assert_eq!(store.take_ended_waiting(), []);
}
