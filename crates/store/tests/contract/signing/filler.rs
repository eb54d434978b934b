use grid_batch_core::{AttemptId, BatchResult, LedgerStatus, TakenBatch};
use grid_batch_withdrawals::{
    BatchAttempt, NewSignedTransaction, NonceOutcome, SignedTransaction, SigningStore,
};

use crate::{
    fixture::{Database, TestStore, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, turn, withdrawal},
};

on_both! {
    a_nonce_that_was_never_taken_is_filled,
    a_nonce_that_came_to_nothing_is_filled,
    a_nonce_of_which_a_person_said_that_it_came_to_nothing_is_filled,
    a_filler_is_outbid_by_another_and_the_same_is_kept_once,
    no_nonce_is_filled_with_which_may_be_paid,
    only_nonces_before_the_withdrawals_own_are_filled,
    nothing_is_filled_when_it_is_not_ones_turn,
    nothing_that_pays_fills_a_nonce,
    the_next_nonce_is_after_the_highest,
}

fn filler(nonce: u64, max_fee: u128) -> NewSignedTransaction {
    NewSignedTransaction { is_filler: true, ..signed(nonce, max_fee) }
}

fn fill(store: &TestStore, taken: &TakenBatch, nonce: u64) -> Option<SignedTransaction> {
    store.fill_nonce(&turn(taken), nonce, &mut |nonce| Ok(filler(nonce, 9))).unwrap()
}

fn from(store: &TestStore, nonce: u64) -> Vec<NewSignedTransaction> {
    store.transactions_from(&service(ACCOUNT), nonce).unwrap()
}

/// Two withdrawals, of which the first ended as `end` says, and the second waits.
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

/// A withdrawal that waits with this nonce, the first of its account.
fn waiting_with(store: &TestStore, nonce: u64) -> TakenBatch {
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.sign(&taken, nonce).unwrap();
    taken
}

fn a_nonce_that_was_never_taken_is_filled(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let kept = fill(&store, &taken, 6).unwrap();
    assert_eq!((&kept.signed, kept.signed_at, kept.sent_at), (&filler(6, 9), db.now(), None));
    assert_eq!(from(&store, 0), [filler(6, 9), signed(7, 100)]);
    store.mark_sent(&kept.signed.hash, None).unwrap();
    // It is nobody's.
    assert_eq!(store.told(1).nonce.unwrap().nonce, 7);
}

fn a_nonce_that_came_to_nothing_is_filled(db: &Database) {
    for spent in [NonceOutcome::Reverted, NonceOutcome::UsedElsewhere] {
        let db = db.another();
        let (store, second) = after_one_that(&db, |store, first, nonce| {
            store.spend_as(ACCOUNT, nonce, spent.clone());
            store.refuse(first, "it came to nothing");
        });
        assert_eq!(from(&store, 0), [signed(1, 100)]);
        fill(&store, &second, 0).unwrap();
        assert_eq!(from(&store, 0), [filler(0, 9), signed(1, 100)]);
        let first = store.told(1).nonce.unwrap();
        assert_eq!((first.transactions.len(), first.outcome), (2, Some(spent)));
    }
}

fn a_nonce_of_which_a_person_said_that_it_came_to_nothing_is_filled(db: &Database) {
    let (store, second) = after_one_that(db, |store, first, _| store.refuse(first, "no"));
    fill(&store, &second, 0).unwrap();
    assert_eq!(from(&store, 0), [filler(0, 9), signed(1, 100)]);
}

fn a_filler_is_outbid_by_another_and_the_same_is_kept_once(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let first = fill(&store, &taken, 6);
    assert_eq!(fill(&store, &taken, 6), first);
    store.fill_nonce(&turn(&taken), 6, &mut |nonce| Ok(filler(nonce, 10))).unwrap().unwrap();
    assert_eq!(from(&store, 6)[0], filler(6, 10));
}

fn no_nonce_is_filled_with_which_may_be_paid(db: &Database) {
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    for spent in [None, Some(withdrawn)] {
        let db = db.another();
        let (store, second) = after_one_that(&db, |store, first, nonce| {
            if let Some(spent) = spent {
                store.spend_as(ACCOUNT, nonce, spent);
            }
            store.accept_and(first, LedgerStatus::Committed);
        });
        assert_eq!(fill(&store, &second, 0), None);
        assert_eq!(from(&store, 0), [signed(0, 100), signed(1, 100)]);
    }
}

fn only_nonces_before_the_withdrawals_own_are_filled(db: &Database) {
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

fn nothing_is_filled_when_it_is_not_ones_turn(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let BatchAttempt { attempt_id, .. } = turn(&taken);
    let other = BatchAttempt {
        attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
        ..turn(&taken)
    };
    let never = &mut |_| -> BatchResult<NewSignedTransaction> { panic!("it is nobody's turn") };
    assert_eq!(store.fill_nonce(&other, 6, never), Ok(None));
}

fn nothing_that_pays_fills_a_nonce(db: &Database) {
    let store = db.open();
    let taken = waiting_with(&store, 7);
    let mut pays = |nonce| Ok(signed(nonce, 9));
    let error = store.fill_nonce(&turn(&taken), 6, &mut pays).unwrap_err().to_string();
    assert!(error.contains("nonce 6"), "{error}");
    assert_eq!(from(&store, 0), [signed(7, 100)]);
}

fn the_next_nonce_is_after_the_highest(db: &Database) {
    let store = db.open();
    let next = || store.next_nonce(&service(ACCOUNT)).unwrap();
    store.schedule_all(&[withdrawal("other", 2)]);
    store.take_and_sign("other");
    assert_eq!(next(), None);
    waiting_with(&store, 7);
    assert_eq!(next(), Some(8));
}
