use grid_batch_core::{AttemptId, Outcome};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, StoreExt, on_both},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, turn, withdrawal},
};

on_both! {
    another_transaction_with_the_same_nonce_is_kept_after_the_first,
    the_same_transaction_again_is_kept_once,
    nothing_is_signed_again_with_a_nonce_that_is_not_open,
    nothing_is_signed_again_when_it_is_not_ones_turn,
    the_nonce_of_an_earlier_turn_is_signed_with_again,
}

fn another_transaction_with_the_same_nonce_is_kept_after_the_first(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 300) };
    for another in [signed(nonce, 200), cancel.clone()] {
        let kept = store.replace_transaction(&turn(&taken), another.clone()).unwrap().unwrap();
        assert_eq!((kept.signed, kept.signed_at), (another, db.now()));
    }
    let transactions = store.told(1).nonce.unwrap().transactions;
    let all: Vec<NewSignedTransaction> = transactions.into_iter().map(|kept| kept.signed).collect();
    assert_eq!(all, [signed(nonce, 100), signed(nonce, 200), cancel]);
}

fn the_same_transaction_again_is_kept_once(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let first = store.replace_transaction(&turn(&taken), signed(nonce, 200)).unwrap();
    db.later(1);
    assert_eq!(store.replace_transaction(&turn(&taken), signed(nonce, 200)).unwrap(), first);
    assert_eq!(store.told(1).nonce.unwrap().transactions.len(), 2);
}

fn nothing_is_signed_again_with_a_nonce_that_is_not_open(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.replace_transaction(&turn(&taken), signed(0, 200)), Ok(None));
    let nonce = store.sign(&taken, 5).unwrap().signed.nonce;
    assert_eq!(store.replace_transaction(&turn(&taken), signed(nonce + 1, 200)), Ok(None));
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    assert_eq!(store.replace_transaction(&turn(&taken), signed(nonce, 200)), Ok(None));
}

fn nothing_is_signed_again_when_it_is_not_ones_turn(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let BatchAttempt { attempt_id, .. } = turn(&taken);
    let other = BatchAttempt {
        attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
        ..turn(&taken)
    };
    assert_eq!(store.replace_transaction(&other, signed(nonce, 200)), Ok(None));
    store.outcome(&taken, Outcome::Ambiguous);
    assert_eq!(store.replace_transaction(&turn(&taken), signed(nonce, 200)), Ok(None));
}

fn the_nonce_of_an_earlier_turn_is_signed_with_again(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::NotSent);
    let taken = store.take_one(ACCOUNT);
    assert!(store.replace_transaction(&turn(&taken), signed(nonce, 200)).unwrap().is_some());
}
