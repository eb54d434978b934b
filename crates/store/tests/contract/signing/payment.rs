use grid_batch_withdrawals::{NonceOutcome, Payment, SigningStore, WithdrawalStore};

use crate::{
    fixture::{Database, by_program, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id},
};

on_both! {
    payment_matches_the_withdrawal,
    nonce_outcome_is_returned_within_its_generation,
    superseded_batch_has_no_payment,
}

fn payment_matches_the_withdrawal(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let batch_id = withdrawal_id(1).batch_id(1);
    let expected = Payment {
        withdrawal_id: withdrawal_id(1),
        generation: 1,
        pool: "0xpool".to_owned(),
        beneficiary: "0xmember1".to_owned(),
        amount: "1001".to_owned(),
        call: None,
        cancel_requested: false,
        speed_up_at: None,
        is_restored: false,
        nonce: None,
    };
    assert_eq!(store.payment(&service(ACCOUNT), &batch_id), Ok(Some(expected)));
    assert_eq!(store.payment(&service("other"), &batch_id), Ok(None));
}

/// A crash may happen after the outcome of a nonce is stored but before its batch ends.
fn nonce_outcome_is_returned_within_its_generation(db: &Database) {
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    for spent in
        [NonceOutcome::Reverted, NonceOutcome::Cancelled, NonceOutcome::UsedElsewhere, withdrawn]
    {
        let db = db.another();
        let store = db.open();
        store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
        let (taken, nonce) = store.take_and_sign(ACCOUNT);
        store.close_as(ACCOUNT, nonce, spent.clone());
        let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
        assert_eq!(payment.nonce.unwrap().outcome, Some(spent));
    }
}

fn superseded_batch_has_no_payment(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.reject(&taken, "no");
    assert!(store.payment(&taken.service_id, &taken.batch_id).unwrap().is_some());
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(store.payment(&taken.service_id, &taken.batch_id), Ok(None));
}
