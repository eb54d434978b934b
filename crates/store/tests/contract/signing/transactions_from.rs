use grid_batch_core::batches::LedgerStatus;
use grid_batch_withdrawals::{NewSignedTransaction, NonceOutcome, SigningStore, WithdrawalStore};

use crate::{
    fixture::{Database, TestStore, by_program, on_both, service},
    withdrawals::fixture::{
        ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal, withdrawal_id,
    },
};

on_both! {
    best_paid_transaction_of_each_nonce_in_order,
    later_of_two_equal_fees_is_returned,
    cancelling_transaction_is_returned_whatever_its_fee,
    payment_decided_invalid_is_returned_after_retry,
    ended_withdrawals_are_included,
    failed_payment_is_omitted_but_its_cancel_is_not,
    other_accounts_are_omitted,
}

fn from(store: &TestStore, nonce: u64) -> Vec<NewSignedTransaction> {
    store.transactions_from(&service(ACCOUNT), nonce).unwrap()
}

/// Signs for these withdrawals, starting with nonce 0, and commits each.
fn sign_and_commit(store: &TestStore, numbers: impl IntoIterator<Item = u128>) {
    for number in numbers {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        let (taken, _) = store.take_and_sign(ACCOUNT);
        store.accept_and(&taken, LedgerStatus::Committed);
    }
}

fn best_paid_transaction_of_each_nonce_in_order(db: &Database) {
    let store = db.open();
    sign_and_commit(&store, 0..11);
    store.schedule_all(&[withdrawal(ACCOUNT, 11)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    for max_fee in [300, 200] {
        store.replace_transaction(&attempt_of(&taken), signed(nonce, max_fee)).unwrap().unwrap();
    }
    assert_eq!(from(&store, 9), [signed(9, 100), signed(10, 100), signed(11, 300)]);
    assert_eq!(from(&store, 12), []);
}

fn later_of_two_equal_fees_is_returned(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let later = NewSignedTransaction { hash: [0; 32], ..signed(nonce, 100) };
    store.replace_transaction(&attempt_of(&taken), later.clone()).unwrap().unwrap();
    assert_eq!(from(&store, nonce), [later]);
}

fn cancelling_transaction_is_returned_whatever_its_fee(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 50) };
    for another in [cancel.clone(), signed(nonce, 200)] {
        store.replace_transaction(&attempt_of(&taken), another).unwrap().unwrap();
    }
    assert_eq!(from(&store, nonce), [cancel]);
}

fn payment_decided_invalid_is_returned_after_retry(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.reject(&taken, "an operator decided");
    assert_eq!(from(&store, nonce), []);
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(from(&store, nonce), [signed(nonce, 100)]);
}

fn ended_withdrawals_are_included(db: &Database) {
    let store = db.open();
    sign_and_commit(&store, [1]);
    store.close_as(ACCOUNT, 0, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(from(&store, 0), [signed(0, 100)]);
}

fn failed_payment_is_omitted_but_its_cancel_is_not(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    for spent in [NonceOutcome::Reverted, NonceOutcome::UsedElsewhere] {
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        assert_eq!(from(&store, 0), [signed(nonce, 100)]);
        store.close_as(ACCOUNT, nonce, spent);
        assert_eq!(from(&store, 0), []);
        store.reject(&taken, "it failed");
    }
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 200) };
    store.replace_transaction(&attempt_of(&taken), cancel.clone()).unwrap().unwrap();
    store.close_as(ACCOUNT, nonce, NonceOutcome::Cancelled);
    assert_eq!(from(&store, 0), [cancel]);
}

fn other_accounts_are_omitted(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal("other", 1)]);
    store.take_and_sign("other");
    assert_eq!(from(&store, 0), []);
}
