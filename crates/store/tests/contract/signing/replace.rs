use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, StoreExt, on_both},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal},
};

on_both! {
    replacement_is_stored_after_the_first_transaction,
    same_replacement_is_stored_once,
    replacement_needs_an_open_nonce,
    replacement_needs_the_current_attempt,
    later_attempt_can_replace_with_the_same_nonce,
}

fn replacement_is_stored_after_the_first_transaction(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 300) };
    for another in [signed(nonce, 200), cancel.clone()] {
        let kept =
            store.replace_transaction(&attempt_of(&taken), another.clone()).unwrap().unwrap();
        assert_eq!((kept.signed, kept.signed_at), (another, db.now()));
    }
    let transactions = store.details_of(1).nonce.unwrap().transactions;
    let all: Vec<NewSignedTransaction> = transactions.into_iter().map(|kept| kept.signed).collect();
    assert_eq!(all, [signed(nonce, 100), signed(nonce, 200), cancel]);
}

fn same_replacement_is_stored_once(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let first = store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)).unwrap();
    db.later(1);
    assert_eq!(store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)).unwrap(), first);
    assert_eq!(store.details_of(1).nonce.unwrap().transactions.len(), 2);
}

fn replacement_needs_an_open_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.replace_transaction(&attempt_of(&taken), signed(0, 200)), Ok(None));
    let nonce = store.sign(&taken, 5).unwrap().signed.nonce;
    assert_eq!(store.replace_transaction(&attempt_of(&taken), signed(nonce + 1, 200)), Ok(None));
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    assert_eq!(store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)), Ok(None));
}

fn replacement_needs_the_current_attempt(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let BatchAttempt { attempt_id, .. } = attempt_of(&taken);
    let other = BatchAttempt {
        attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
        ..attempt_of(&taken)
    };
    assert_eq!(store.replace_transaction(&other, signed(nonce, 200)), Ok(None));
    store.outcome(&taken, Outcome::Ambiguous);
    assert_eq!(store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)), Ok(None));
}

fn later_attempt_can_replace_with_the_same_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::NotSent);
    let taken = store.take_one(ACCOUNT);
    assert!(store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)).unwrap().is_some());
}
