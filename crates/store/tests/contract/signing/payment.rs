use grid_batch_withdrawals::{NonceOutcome, Payment, SigningStore};

use crate::{
    fixture::{Database, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id},
};

on_both! {
    a_payment_is_what_the_withdrawal_says,
    what_became_of_a_nonce_is_told_within_its_generation,
    a_batch_that_was_retried_is_of_no_withdrawal_any_more,
}

fn a_payment_is_what_the_withdrawal_says(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let batch_id = withdrawal_id(1).batch_id(1);
    let expected = Payment {
        withdrawal_id: withdrawal_id(1),
        generation: 1,
        pool: "0xpool".to_owned(),
        beneficiary: "0xmember1".to_owned(),
        amount: "1001".to_owned(),
        cancel_requested: false,
        nonce: None,
    };
    assert_eq!(store.payment(&service(ACCOUNT), &batch_id), Ok(Some(expected)));
    assert_eq!(store.payment(&service("other"), &batch_id), Ok(None));
}

/// A crash may come between what became of a nonce and what becomes of its batch.
fn what_became_of_a_nonce_is_told_within_its_generation(db: &Database) {
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    for spent in
        [NonceOutcome::Reverted, NonceOutcome::Cancelled, NonceOutcome::UsedElsewhere, withdrawn]
    {
        let db = db.another();
        let store = db.open();
        store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        store.spend_as(ACCOUNT, nonce, spent.clone());
        let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
        assert_eq!(payment.nonce.unwrap().outcome, Some(spent));
    }
}

fn a_batch_that_was_retried_is_of_no_withdrawal_any_more(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.refuse(&taken, "no");
    assert!(store.payment(&taken.service_id, &taken.batch_id).unwrap().is_some());
    store.retry_withdrawal(&withdrawal_id(1)).unwrap();
    assert_eq!(store.payment(&taken.service_id, &taken.batch_id), Ok(None));
}
