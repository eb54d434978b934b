use grid_batch_withdrawals::{NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, withdrawal},
};

on_both! {
    nonce_outcome_is_final,
    closing_an_unassigned_nonce_is_an_error,
    closed_nonce_takes_no_notes,
    unique_index_allows_one_paying_nonce_per_withdrawal,
}

fn withdrawn(id: &str) -> NonceOutcome {
    NonceOutcome::Withdrawn { withdrawal_id: id.to_owned() }
}

fn nonce_outcome_is_final(db: &Database) {
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
        store.close_as(ACCOUNT, nonce, first.clone());
        for second in &all {
            let done = store.close_nonce(&service(ACCOUNT), nonce, second);
            assert_eq!(done.is_ok(), first == second, "{first:?}, then {second:?}");
            assert_eq!(store.details_of(1).nonce.unwrap().outcome.as_ref(), Some(first));
        }
    }
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, withdrawn("7"));
    let error = store
        .close_nonce(&service(ACCOUNT), nonce, &NonceOutcome::Reverted)
        .unwrap_err()
        .to_string();
    let expected = "nonce 0 of eip155:1:0x0a is stored as withdrawn with the pool's id 7; it \
                    cannot be changed to reverted";
    assert_eq!(error, expected);
}

fn closing_an_unassigned_nonce_is_an_error(db: &Database) {
    let error = db
        .open()
        .close_nonce(&service(ACCOUNT), 3, &NonceOutcome::Reverted)
        .unwrap_err()
        .to_string();
    assert!(error.contains("nonce 3") && error.contains(ACCOUNT), "{error}");
}

fn closed_nonce_takes_no_notes(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.note(&service(ACCOUNT), nonce, Some("late")).unwrap();
    assert_eq!(store.details_of(1).nonce.unwrap().note, None);
}

/// The database refuses a second payment even if the program requests it.
fn unique_index_allows_one_paying_nonce_per_withdrawal(db: &Database) {
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
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    another(nonce + 1).unwrap();
    store.close_as(ACCOUNT, nonce + 1, withdrawn("1"));
    assert!(another(nonce + 2).unwrap_err().to_string().to_lowercase().contains("unique"));
    assert_eq!(store.sign(&taken, 0), None);
}
