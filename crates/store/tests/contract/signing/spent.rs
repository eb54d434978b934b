use grid_batch_withdrawals::{NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, withdrawal},
};

on_both! {
    what_became_of_a_nonce_is_written_once_and_for_good,
    a_nonce_that_was_never_taken_is_not_spent,
    nothing_is_noted_of_a_nonce_that_is_spent,
    the_database_keeps_a_withdrawal_to_one_nonce_that_counts,
}

fn withdrawn(id: &str) -> NonceOutcome {
    NonceOutcome::Withdrawn { withdrawal_id: id.to_owned() }
}

fn what_became_of_a_nonce_is_written_once_and_for_good(db: &Database) {
    let all = [
        withdrawn("7"),
        withdrawn("8"),
        NonceOutcome::Reverted,
        NonceOutcome::Cancelled,
        NonceOutcome::UsedElsewhere,
    ];
    for first in &all {
        let db = db.another();
        let store = db.open();
        store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
        let (_, nonce) = store.take_and_sign(ACCOUNT);
        store.spend_as(ACCOUNT, nonce, first.clone());
        for second in &all {
            let done = store.close_nonce(&service(ACCOUNT), nonce, second);
            assert_eq!(done.is_ok(), first == second, "{first:?}, then {second:?}");
            assert_eq!(store.told(1).nonce.unwrap().spent.as_ref(), Some(first));
        }
    }
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    store.spend_as(ACCOUNT, nonce, withdrawn("7"));
    let error = store
        .close_nonce(&service(ACCOUNT), nonce, &NonceOutcome::Reverted)
        .unwrap_err()
        .to_string();
    let expected = "the nonce 0 of eip155:1:0x0a was used for the pool's withdrawal 7 and cannot become \
                    reverted";
    assert_eq!(error, expected);
}

fn a_nonce_that_was_never_taken_is_not_spent(db: &Database) {
    let error = db
        .open()
        .close_nonce(&service(ACCOUNT), 3, &NonceOutcome::Reverted)
        .unwrap_err()
        .to_string();
    assert!(error.contains("nonce 3") && error.contains(ACCOUNT), "{error}");
}

fn nothing_is_noted_of_a_nonce_that_is_spent(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.note(&service(ACCOUNT), nonce, Some("late")).unwrap();
    assert_eq!(store.told(1).nonce.unwrap().note, None);
}

/// Whatever a program does, that no withdrawal is paid twice does not rest on it alone.
fn the_database_keeps_a_withdrawal_to_one_nonce_that_counts(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let another = |nonce: u64| {
        db.execute(&format!(
            "insert into account_nonces (service_id, nonce, withdrawal_seq, generation, assigned_at)
             select service_id, {nonce}, seq, 1, 0 from withdrawals where batch_seq = 1"
        ))
    };
    assert!(another(nonce + 1).unwrap_err().to_string().to_lowercase().contains("unique"));
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    another(nonce + 1).unwrap();
    store.spend_as(ACCOUNT, nonce + 1, withdrawn("1"));
    assert!(another(nonce + 2).unwrap_err().to_string().to_lowercase().contains("unique"));
    assert_eq!(store.sign(&taken, 0), None);
}
