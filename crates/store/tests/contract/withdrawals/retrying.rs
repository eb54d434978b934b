use std::thread;

use grid_batch_core::{BatchState, Decision, LedgerStatus, Outcome};
use grid_batch_withdrawals::{NonceOutcome, RetryOutcome, SigningStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, on_both, service};

on_both! {
    what_came_to_nothing_is_begun_anew_at_the_end_of_the_queue,
    what_has_not_come_to_nothing_is_left_alone,
    who_asks_often_at_once_begins_it_anew_once,
    what_is_begun_anew_is_cancelled_no_more,
    a_nonce_that_came_to_nothing_is_open_no_more,
    a_nonce_that_may_still_be_paid_stays,
}

fn what_came_to_nothing_is_begun_anew_at_the_end_of_the_queue(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.refuse(&store.take_one(ACCOUNT), "the pool is empty");
    let scheduled_at = db.now();
    db.later(1);
    let retried = store.retry_withdrawal(&withdrawal_id(1)).unwrap();
    assert_eq!(retried, RetryOutcome::Scheduled { generation: 2 });

    let told = store.told(1);
    assert_eq!((told.generation, told.created_at), (2, scheduled_at));
    assert_eq!((told.batch.batch_id, told.ahead), (withdrawal_id(1).batch_id(2), Some(1)));
    assert_eq!((told.batch.progress.state, told.fail_reason), (BatchState::New, None));
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 2);

    store.commit_next(ACCOUNT);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(taken.serialized_batch, b"0xpool 0xmember1 1001");
    store.refuse(&taken, "still empty");
    let again = store.retry_withdrawal(&withdrawal_id(1)).unwrap();
    assert_eq!(again, RetryOutcome::Scheduled { generation: 3 });
}

fn what_has_not_come_to_nothing_is_left_alone(db: &Database) {
    let store = db.open();
    assert_eq!(store.retry_withdrawal(&withdrawal_id(1)).unwrap(), RetryOutcome::NotFound);
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let not_failed = |state| {
        let retried = store.retry_withdrawal(&withdrawal_id(1)).unwrap();
        assert_eq!(retried, RetryOutcome::NotFailed { state });
        assert_eq!(store.told(1).generation, 1);
    };
    not_failed(BatchState::New);
    let taken = store.take_one(ACCOUNT);
    not_failed(BatchState::Submitting);
    store.accept_and(&taken, LedgerStatus::Committed);
    not_failed(BatchState::Committed);
}

fn who_asks_often_at_once_begins_it_anew_once(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.refuse(&store.take_one(ACCOUNT), "no");
    let answers: Vec<RetryOutcome> = thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| store.retry_withdrawal(&withdrawal_id(1)).unwrap()))
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let begun = answers.iter().filter(|a| **a == RetryOutcome::Scheduled { generation: 2 }).count();
    let left = RetryOutcome::NotFailed { state: BatchState::New };
    assert_eq!((begun, answers.iter().filter(|a| **a == left).count()), (1, 7));
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);
}

fn what_is_begun_anew_is_cancelled_no_more(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.cancel_withdrawal(&withdrawal_id(1)).unwrap();
    store.refuse(&store.take_one(ACCOUNT), "cancelled");
    store.retry_withdrawal(&withdrawal_id(1)).unwrap();
    assert_eq!(store.told(1).cancelled_at, None);
    assert!(store.sign(&store.take_one(ACCOUNT), 0).is_some());
}

fn a_nonce_that_came_to_nothing_is_open_no_more(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.refuse(&taken, "reverted");
    store.retry_withdrawal(&withdrawal_id(1)).unwrap();

    let taken = store.take_one(ACCOUNT);
    let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    assert_eq!((payment.generation, payment.nonce), (2, None));
    // Its story still tells of it, until it has another.
    assert_eq!(store.told(1).nonce.unwrap().generation, 1);
    assert_eq!(store.sign(&taken, 0).unwrap().signed.nonce, nonce + 1);
    let open = store.told(1).nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.outcome), (nonce + 1, 2, None));
}

fn a_nonce_that_may_still_be_paid_stays(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "nobody knows");
    store.decide(&taken.service_id, &taken.batch_id, Decision::Invalid).unwrap();
    store.retry_withdrawal(&withdrawal_id(1)).unwrap();

    let taken = store.take_one(ACCOUNT);
    let open = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.outcome), (nonce, 1, None));
    assert_eq!(store.sign(&taken, 0), None);
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(store.sign(&taken, 0), None);
}
