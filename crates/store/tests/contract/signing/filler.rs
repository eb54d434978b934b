use grid_batch_core::BatchResult;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, SignedTransaction, SigningStore,
    WithdrawalStore,
};

use crate::{
    fixture::{Database, StoreExt, TestStore, by_program, on_both, service},
    withdrawals::fixture::{
        ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal, withdrawal_id,
    },
};

on_both! {
    unassigned_nonce_is_filled,
    failed_nonce_is_filled,
    nonce_of_a_batch_decided_invalid_is_filled,
    filler_can_be_replaced_and_duplicate_is_stored_once,
    nonce_that_may_still_pay_is_not_filled,
    nonce_of_a_cancelled_withdrawal_is_filled,
    only_nonces_below_the_assigned_one_are_filled,
    filler_needs_the_current_attempt,
    filler_must_not_pay,
    next_nonce_follows_the_highest,
}

fn filler(nonce: u64, max_fee: u128) -> NewSignedTransaction {
    NewSignedTransaction { is_filler: true, ..signed(nonce, max_fee) }
}

fn fill(store: &TestStore, taken: &TakenBatch, nonce: u64) -> Option<SignedTransaction> {
    store.fill_nonce(&attempt_of(taken), nonce, &mut |nonce| Ok(filler(nonce, 9))).unwrap()
}

fn from(store: &TestStore, nonce: u64) -> Vec<NewSignedTransaction> {
    store.transactions_from(&service(ACCOUNT), nonce).unwrap()
}

/// Two withdrawals. `end` ends the first one, and the second one is signed.
fn after_one_that(
    db: &Database,
    end: impl FnOnce(&TestStore, &TakenBatch, u64),
) -> (TestStore, TakenBatch) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (first, nonce) = store.take_and_sign(ACCOUNT);
    end(&store, &first, nonce);
    let (second, _) = store.take_and_sign(ACCOUNT);
    (store, second)
}

/// The first withdrawal of its account, signed with this nonce.
fn waiting_with(store: &TestStore, nonce: u64) -> TakenBatch {
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.sign(&taken, nonce).unwrap();
    taken
}

fn unassigned_nonce_is_filled(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let kept = fill(&store, &taken, 6).unwrap();
    assert_eq!((&kept.signed, kept.signed_at, kept.sent_at), (&filler(6, 9), db.now(), None));
    assert_eq!(from(&store, 0), [filler(6, 9), signed(7, 100)]);
    store.mark_sent(&kept.signed.hash, None).unwrap();
    // A filler belongs to no withdrawal.
    assert_eq!(store.details_of(1).nonce.unwrap().nonce, 7);
}

fn failed_nonce_is_filled(db: &Database) {
    for spent in [NonceOutcome::Reverted, NonceOutcome::UsedElsewhere] {
        let db = db.another();
        let (store, second) = after_one_that(&db, |store, first, nonce| {
            store.close_as(ACCOUNT, nonce, spent.clone());
            store.reject(first, "it failed");
        });
        assert_eq!(from(&store, 0), [signed(1, 100)]);
        fill(&store, &second, 0).unwrap();
        assert_eq!(from(&store, 0), [filler(0, 9), signed(1, 100)]);
        let first = store.details_of(1).nonce.unwrap();
        assert_eq!((first.transactions.len(), first.outcome), (2, Some(spent)));
    }
}

fn nonce_of_a_batch_decided_invalid_is_filled(db: &Database) {
    let (store, second) = after_one_that(db, |store, first, _| store.reject(first, "no"));
    fill(&store, &second, 0).unwrap();
    assert_eq!(from(&store, 0), [filler(0, 9), signed(1, 100)]);
}

fn filler_can_be_replaced_and_duplicate_is_stored_once(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let first = fill(&store, &taken, 6);
    assert_eq!(fill(&store, &taken, 6), first);
    store.fill_nonce(&attempt_of(&taken), 6, &mut |nonce| Ok(filler(nonce, 10))).unwrap().unwrap();
    assert_eq!(from(&store, 6)[0], filler(6, 10));
}

fn nonce_that_may_still_pay_is_not_filled(db: &Database) {
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    for spent in [None, Some(withdrawn)] {
        let db = db.another();
        let (store, second) = after_one_that(&db, |store, first, nonce| {
            if let Some(spent) = spent {
                store.close_as(ACCOUNT, nonce, spent);
            }
            store.accept_and(first, LedgerStatus::Committed);
        });
        assert_eq!(fill(&store, &second, 0), None);
        assert_eq!(from(&store, 0), [signed(0, 100), signed(1, 100)]);
    }
}

/// Another withdrawal was signed ahead with nonce 1, and then nonce 0 of the first one was used elsewhere.
fn nonce_of_a_cancelled_withdrawal_is_filled(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (first, _) = store.take_and_sign(ACCOUNT);
    store.outcome(&first, Outcome::Accepted);
    let following = store.following_payments(&first.service_id, &first.batch_id, 9).unwrap();
    assert!(store.sign_following(&following.unwrap(), vec![signed(1, 100)]).unwrap());
    let open = || store.open_payments_from(&service(ACCOUNT), 0).unwrap();
    let nonces: Vec<u64> = open().iter().map(|it| it.payment.open_nonce().unwrap().nonce).collect();
    assert_eq!(nonces, [0, 1]);
    store.close_as(ACCOUNT, 0, NonceOutcome::UsedElsewhere);
    let [second] = open().try_into().unwrap();
    assert!(!second.is_held && !second.payment.cancel_requested);
    store.evidence(&first, Evidence::Repeatable);
    let (first, nonce) = store.take_and_sign(ACCOUNT);
    assert_eq!(nonce, 2);
    assert_eq!(fill(&store, &first, 1), None);
    store.cancel_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    assert!(open()[0].payment.cancel_requested);
    fill(&store, &first, 1).unwrap();
    assert_eq!(from(&store, 1), [filler(1, 9), signed(2, 100)]);
}

fn only_nonces_below_the_assigned_one_are_filled(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    for nonce in [7, 8] {
        assert_eq!(fill(&store, &taken, nonce), None);
    }
    let other = db.another();
    let store = other.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    assert_eq!(fill(&store, &store.take_one(ACCOUNT), 0), None);
}

fn filler_needs_the_current_attempt(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let BatchAttempt { attempt_id, .. } = attempt_of(&taken);
    let other = BatchAttempt {
        attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
        ..attempt_of(&taken)
    };
    let never = &mut |_| -> BatchResult<NewSignedTransaction> { panic!("no attempt may sign") };
    assert_eq!(store.fill_nonce(&other, 6, never), Ok(None));
}

fn filler_must_not_pay(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let mut pays = |nonce| Ok(signed(nonce, 9));
    let error = store.fill_nonce(&attempt_of(&taken), 6, &mut pays).unwrap_err().to_string();
    assert!(error.contains("nonce 6"), "{error}");
    assert_eq!(from(&store, 0), [signed(7, 100)]);
}

fn next_nonce_follows_the_highest(db: &Database) {
    let store = db.open();
    let next = || store.next_nonce(&service(ACCOUNT)).unwrap();
    store.schedule_all(&[withdrawal("other", 2)]);
    store.take_and_sign("other");
    assert_eq!(next(), None);
    waiting_with(&store, 7);
    assert_eq!(next(), Some(8));
}
