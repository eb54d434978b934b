use std::thread;

use grid_batch_core::batches::{BatchState, Decision, LedgerStatus, TraceContext};
use grid_batch_core::ledger::Outcome;
use grid_batch_withdrawals::{
    NonceOutcome, RetryOutcome, SigningStore, Withdrawal, WithdrawalState, WithdrawalStore,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, exactly, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, by_program, on_both, service};

on_both! {
    failed_withdrawal_is_retried_at_the_end_of_the_queue,
    withdrawal_that_has_not_failed_is_not_retried,
    concurrent_retries_start_one_generation,
    retry_clears_the_cancellation,
    retried_withdrawal_keeps_its_trace,
    failed_nonce_is_not_open_after_retry,
    nonce_that_may_still_pay_stays_open_after_retry,
}

fn failed_withdrawal_is_retried_at_the_end_of_the_queue(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.reject(&store.take_one(ACCOUNT), "the pool is empty");
    let scheduled_at = db.now();
    db.later(1);
    let retried = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });

    let details = store.details_of(1);
    assert_eq!((details.generation, details.created_at), (2, scheduled_at));
    assert_eq!((details.batch.batch_id, details.ahead), (withdrawal_id(1).batch_id(2), exactly(1)));
    assert_eq!((details.batch.progress.state, details.fail_reason), (BatchState::New, None));
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 2);

    store.commit_next(ACCOUNT);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(taken.serialized_batch, b"0xpool 0xmember1 1001");
    store.reject(&taken, "still empty");
    let again = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(again, RetryOutcome::Scheduled { generation: 3 });
}

fn retried_withdrawal_keeps_its_trace(db: &Database) {
    let store = db.open();
    let trace: Option<TraceContext> =
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
    store.schedule_all(&[Withdrawal { trace: trace.clone(), ..withdrawal(ACCOUNT, 1) }]);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(taken.trace, trace);
    store.reject(&taken, "the pool is empty");
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(store.take_one(ACCOUNT).trace, trace);
}

fn withdrawal_that_has_not_failed_is_not_retried(db: &Database) {
    let store = db.open();
    assert_eq!(
        store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap(),
        RetryOutcome::NotFound
    );
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let not_failed = |state: WithdrawalState| {
        let retried = store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
        assert_eq!(retried, RetryOutcome::NotFailed { state });
        assert_eq!(store.details_of(1).generation, 1);
    };
    not_failed(WithdrawalState::Scheduled);
    let taken = store.take_one(ACCOUNT);
    not_failed(WithdrawalState::Submitting);
    store.accept_and(&taken, LedgerStatus::Committed);
    not_failed(WithdrawalState::Withdrawn);
}

fn concurrent_retries_start_one_generation(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.reject(&store.take_one(ACCOUNT), "no");
    let answers: Vec<RetryOutcome> = thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap())
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let started =
        answers.iter().filter(|a| **a == RetryOutcome::Scheduled { generation: 2 }).count();
    let refused = RetryOutcome::NotFailed { state: WithdrawalState::Scheduled };
    assert_eq!((started, answers.iter().filter(|a| **a == refused).count()), (1, 7));
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);
}

fn retry_clears_the_cancellation(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    store.reject(&store.take_one(ACCOUNT), "cancelled");
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(store.details_of(1).cancelled_at, None);
    assert!(store.sign(&store.take_one(ACCOUNT), 0).is_some());
}

fn failed_nonce_is_not_open_after_retry(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.reject(&taken, "reverted");
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();

    let taken = store.take_one(ACCOUNT);
    let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    assert_eq!((payment.generation, payment.nonce), (2, None));
    // The details show the failed nonce until another is assigned.
    assert_eq!(store.details_of(1).nonce.unwrap().generation, 1);
    assert_eq!(store.sign(&taken, 0).unwrap().signed.nonce, nonce + 1);
    let open = store.details_of(1).nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.outcome), (nonce + 1, 2, None));
}

fn nonce_that_may_still_pay_stays_open_after_retry(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "no evidence");
    store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Invalid).unwrap();
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();

    let taken = store.take_one(ACCOUNT);
    let open = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.outcome), (nonce, 1, None));
    assert_eq!(store.sign(&taken, 0), None);
    store.close_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(store.sign(&taken, 0), None);
}
