use grid_batch_core::LedgerStatus;
use grid_batch_withdrawals::{NewSignedTransaction, NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, TestStore, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, turn, withdrawal, withdrawal_id},
};

on_both! {
    of_each_nonce_the_best_paid_is_told_in_order,
    of_two_that_pay_the_same_the_later_is_told,
    what_cancels_is_told_however_little_it_pays,
    a_payment_that_a_person_found_invalid_is_told_only_when_it_is_tried_anew,
    what_has_ended_is_told_too,
    a_payment_that_came_to_nothing_is_not_told_but_what_cancelled_it_is,
    an_account_is_told_its_own,
}

fn from(store: &TestStore, nonce: u64) -> Vec<NewSignedTransaction> {
    store.transactions_from(&service(ACCOUNT), nonce).unwrap()
}

/// Signs for as many withdrawals, each of which then commits, from the nonce 0.
fn sign_and_commit(store: &TestStore, numbers: impl IntoIterator<Item = u128>) {
    for number in numbers {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        let (taken, _) = store.take_and_sign(ACCOUNT);
        store.accept_and(&taken, LedgerStatus::Committed);
    }
}

fn of_each_nonce_the_best_paid_is_told_in_order(db: &Database) {
    let store = db.open();
    sign_and_commit(&store, 0..11);
    store.schedule_all(&[withdrawal(ACCOUNT, 11)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    for max_fee in [300, 200] {
        store.replace_transaction(&turn(&taken), signed(nonce, max_fee)).unwrap().unwrap();
    }
    assert_eq!(from(&store, 9), [signed(9, 100), signed(10, 100), signed(11, 300)]);
    assert_eq!(from(&store, 12), []);
}

fn of_two_that_pay_the_same_the_later_is_told(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let later = NewSignedTransaction { hash: [0; 32], ..signed(nonce, 100) };
    store.replace_transaction(&turn(&taken), later.clone()).unwrap().unwrap();
    assert_eq!(from(&store, nonce), [later]);
}

fn what_cancels_is_told_however_little_it_pays(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 50) };
    for another in [cancel.clone(), signed(nonce, 200)] {
        store.replace_transaction(&turn(&taken), another).unwrap().unwrap();
    }
    assert_eq!(from(&store, nonce), [cancel]);
}

fn a_payment_that_a_person_found_invalid_is_told_only_when_it_is_tried_anew(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.refuse(&taken, "a person says so");
    assert_eq!(from(&store, nonce), []);
    store.retry_withdrawal(&withdrawal_id(1)).unwrap();
    assert_eq!(from(&store, nonce), [signed(nonce, 100)]);
}

fn what_has_ended_is_told_too(db: &Database) {
    let store = db.open();
    sign_and_commit(&store, [1]);
    store.spend_as(ACCOUNT, 0, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(from(&store, 0), [signed(0, 100)]);
}

fn a_payment_that_came_to_nothing_is_not_told_but_what_cancelled_it_is(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    for spent in [NonceOutcome::Reverted, NonceOutcome::UsedElsewhere] {
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        assert_eq!(from(&store, 0), [signed(nonce, 100)]);
        store.spend_as(ACCOUNT, nonce, spent);
        assert_eq!(from(&store, 0), []);
        store.refuse(&taken, "it came to nothing");
    }
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let cancel = NewSignedTransaction { is_filler: true, ..signed(nonce, 200) };
    store.replace_transaction(&turn(&taken), cancel.clone()).unwrap().unwrap();
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Cancelled);
    assert_eq!(from(&store, 0), [cancel]);
}

fn an_account_is_told_its_own(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal("other", 1)]);
    store.take_and_sign("other");
    assert_eq!(from(&store, 0), []);
}
