use std::time::Duration;

use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Decision, Event, LedgerStatus, Stale,
};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::SigningStore;
use grid_batch_withdrawals::{CancelOutcome, WithdrawalStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, by_program, happened, on_both};

on_both! {
    cancellation_request_is_stored_once,
    nothing_is_signed_after_cancellation,
    ended_withdrawal_is_not_cancelled,
    decision_about_a_withdrawal_needs_a_hold,
    cancellation_ends_the_hold_of_a_refused_payment,
    refused_withdrawal_can_be_decided_invalid,
}

fn cancellation_request_is_stored_once(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let noted_at = db.now();
    for _ in 0..2 {
        let cancelled = store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
        assert_eq!(cancelled, CancelOutcome::Requested { state: BatchState::New });
        assert_eq!(store.details_of(1).cancelled_at, Some(noted_at));
        db.later(1);
    }
    assert_eq!(
        store.cancel_withdrawal(&withdrawal_id(2), &by_program()).unwrap(),
        CancelOutcome::NotFound
    );
}

fn nothing_is_signed_after_cancellation(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let cancelled = store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(cancelled, CancelOutcome::Requested { state: BatchState::Submitting });
    let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    assert!(payment.cancel_requested);
    assert_eq!(store.sign(&taken, 0), None);
}

fn ended_withdrawal_is_not_cancelled(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.accept_and(&store.take_one(ACCOUNT), LedgerStatus::Committed);
    store.reject(&store.take_one(ACCOUNT), "no");
    for (number, state) in [(1, BatchState::Committed), (2, BatchState::Invalid)] {
        let cancelled = store.cancel_withdrawal(&withdrawal_id(number), &by_program()).unwrap();
        assert_eq!(cancelled, CancelOutcome::AlreadyEnded { state: state.into() });
        assert_eq!(store.details_of(number).cancelled_at, None);
    }
}

fn decision_about_a_withdrawal_needs_a_hold(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let batch = store.details_of(1).batch;
    let decide = |attempt| {
        store.decide(&batch.service_id, &batch.batch_id, attempt, Decision::Invalid).unwrap()
    };
    assert_eq!(decide(0), ChangeOutcome::Stale(Stale::Withdrawal));
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    assert_eq!(decide(1), ChangeOutcome::Stale(Stale::Withdrawal));
    store.hold(&taken, "no evidence");
    let ended = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: false };
    assert_eq!(decide(1), ended);
}

/// A withdrawal that is held because the ledger refused it.
fn refused_and_held(db: &Database) -> (TestStore, TakenBatch) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::RefusedBatch };
    store.record_one(Change {
        hold: Some("refused by the ledger 10 times: exceeds block gas limit".to_owned()),
        hold_until_decision: true,
        retry_at: Some(db.now().plus(Duration::from_secs(600))),
        ..happened(&taken, event)
    });
    assert!(store.details_of(1).batch.held.is_some());
    assert!(store.take(&[ACCOUNT]).is_empty());
    (store, taken)
}

fn cancellation_ends_the_hold_of_a_refused_payment(db: &Database) {
    let (store, _) = refused_and_held(db);
    let cancelled = store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(cancelled, CancelOutcome::Requested { state: BatchState::Delayed });
    assert_eq!(store.details_of(1).batch.held, None);
    assert_eq!(store.take_one(ACCOUNT).attempt, 2);
}

fn refused_withdrawal_can_be_decided_invalid(db: &Database) {
    let (store, taken) = refused_and_held(db);
    let decided = store.decide(&taken.service_id, &taken.batch_id, 1, Decision::Invalid).unwrap();
    let ended = ChangeOutcome::Applied { state: BatchState::Invalid, next_waits: false };
    assert_eq!(decided, ended);
}
