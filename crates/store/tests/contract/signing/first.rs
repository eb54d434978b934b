use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::{AttemptId, BatchError, BatchResult, LedgerStatus, Outcome};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, turn, withdrawal},
};

on_both! {
    a_nonce_and_what_is_signed_with_it_are_kept_together,
    nonces_follow_each_other_and_skip_what_the_chain_has_used,
    each_account_counts_its_own_nonces,
    what_cannot_be_signed_takes_no_nonce,
    nothing_is_signed_with_another_nonce_than_the_one_that_was_taken,
    nothing_is_signed_for_a_batch_that_is_not_with_this_submitter,
    nothing_is_signed_for_a_batch_that_is_proved_to_be_committed,
    nothing_is_signed_by_an_owner_before,
    nothing_is_signed_twice_while_the_first_may_be_paid,
    what_came_to_nothing_lets_another_nonce_be_taken,
    a_batch_of_no_withdrawal_is_not_signed_for,
    numbers_that_cannot_be_stored_are_errors_and_take_no_nonce,
    of_many_at_once_one_signs,
}

fn nonces_kept(db: &Database) -> [i64; 2] {
    ["account_nonces", "signed_transactions"]
        .map(|table| db.number(&format!("select count(*) as number from {table}")))
}

fn a_nonce_and_what_is_signed_with_it_are_kept_together(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let kept = store.sign(&taken, 5).unwrap();
    assert_eq!((&kept.signed, kept.signed_at), (&signed(5, 100), db.now()));
    assert_eq!((kept.sent_at, &kept.last_error), (None, &None));
    let open = db.open().payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().open;
    assert_eq!(open.unwrap().transactions, [kept]);
}

fn nonces_follow_each_other_and_skip_what_the_chain_has_used(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3, 4].map(|number| withdrawal(ACCOUNT, number)));
    let nonces = [0, 0, 7, 3].map(|at_least| {
        let taken = store.take_one(ACCOUNT);
        let nonce = store.sign(&taken, at_least).unwrap().signed.nonce;
        store.accept_and(&taken, LedgerStatus::Committed);
        nonce
    });
    assert_eq!(nonces, [0, 1, 7, 8]);
}

fn each_account_counts_its_own_nonces(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal("a", 1), withdrawal("b", 2)]);
    let nonces = ["a", "b"].map(|account| {
        let taken = store.take_one(account);
        let mut other = |nonce| {
            Ok(NewSignedTransaction { hash: [account.as_bytes()[0]; 32], ..signed(nonce, 1) })
        };
        store.assign_nonce(&turn(&taken), 4, &mut other).unwrap().unwrap().signed.nonce
    });
    assert_eq!(nonces, [4, 4]);
}

fn what_cannot_be_signed_takes_no_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let no_key = BatchError::InvalidAnswer("there is no key".to_owned());
    let mut refuse = |_| -> BatchResult<NewSignedTransaction> { Err(no_key.clone()) };
    assert_eq!(store.assign_nonce(&turn(&taken), 5, &mut refuse), Err(no_key.clone()));
    assert_eq!(nonces_kept(db), [0, 0]);
    assert_eq!(store.sign(&taken, 5).unwrap().signed.nonce, 5);
}

fn nothing_is_signed_with_another_nonce_than_the_one_that_was_taken(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let turn = turn(&store.take_one(ACCOUNT));
    let error = store.assign_nonce(&turn, 5, &mut |_| Ok(signed(6, 100))).unwrap_err().to_string();
    assert!(error.contains("nonce 6") && error.contains('5'), "{error}");
    assert_eq!(nonces_kept(db), [0, 0]);
}

fn nothing_is_signed_for_a_batch_that_is_not_with_this_submitter(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let first = store.take_one(ACCOUNT);
    let BatchAttempt { attempt_id, .. } = turn(&first);
    let never = &mut |_| -> BatchResult<NewSignedTransaction> { panic!("it is nobody's turn") };
    for other in [
        BatchAttempt { batch_id: withdrawal(ACCOUNT, 2).id.batch_id(1), ..turn(&first) },
        BatchAttempt { batch_id: withdrawal(ACCOUNT, 3).id.batch_id(1), ..turn(&first) },
        BatchAttempt { service_id: service("other"), ..turn(&first) },
        BatchAttempt {
            attempt_id: AttemptId { attempt: attempt_id.attempt + 1, ..attempt_id },
            ..turn(&first)
        },
        BatchAttempt {
            attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
            ..turn(&first)
        },
    ] {
        assert_eq!(store.assign_nonce(&other, 0, never), Ok(None), "{other:?}");
    }
    store.outcome(&first, Outcome::NotSent);
    assert_eq!(store.assign_nonce(&turn(&first), 0, never), Ok(None));
    let second = store.take_one(ACCOUNT);
    assert_eq!(store.assign_nonce(&turn(&first), 0, never), Ok(None));
    assert!(store.sign(&second, 0).is_some());
}

fn nothing_is_signed_for_a_batch_that_is_proved_to_be_committed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.status(&taken, LedgerStatus::Committed);
    assert_eq!(store.sign(&taken, 0), None);
}

fn nothing_is_signed_by_an_owner_before(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    db.let_die(store.worker());
    assert_eq!(db.instance().take(9).unwrap().claims.len(), 1);
    assert_eq!(store.sign(&taken, 0), None);
    assert_eq!(nonces_kept(db), [0, 0]);
}

fn nothing_is_signed_twice_while_the_first_may_be_paid(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    assert_eq!(store.sign(&taken, 9), None);
    store.spend_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(store.sign(&taken, 9), None);
    assert_eq!(nonces_kept(db), [1, 1]);
}

fn what_came_to_nothing_lets_another_nonce_be_taken(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.spend_as(ACCOUNT, nonce, NonceOutcome::UsedElsewhere);
    assert_eq!(store.sign(&taken, 0).unwrap().signed.nonce, nonce + 1);
}

fn a_batch_of_no_withdrawal_is_not_signed_for(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&taken, 0), None);
    assert_eq!(store.payment(&service(ACCOUNT), &id(1)), Ok(None));
}

fn numbers_that_cannot_be_stored_are_errors_and_take_no_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let turn = turn(&store.take_one(ACCOUNT));
    let most = i64::MAX as u128;
    let mut too_dear = |nonce| Ok(signed(nonce, most + 1));
    let error = store.assign_nonce(&turn, 0, &mut too_dear).unwrap_err().to_string();
    assert!(error.contains("9223372036854775808"), "{error}");
    let mut fits = |nonce| Ok(signed(nonce, most));
    let error = store.assign_nonce(&turn, u64::MAX, &mut fits).unwrap_err().to_string();
    assert!(error.contains("18446744073709551615"), "{error}");
    assert_eq!(nonces_kept(db), [0, 0]);
    let kept = store.assign_nonce(&turn, 0, &mut fits).unwrap().unwrap();
    assert_eq!(kept.signed.max_fee, most);
}

fn of_many_at_once_one_signs(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let kept: Vec<_> = thread::scope(|scope| {
        let signers: Vec<_> = (0..8).map(|_| scope.spawn(|| store.sign(&taken, 0))).collect();
        signers.into_iter().filter_map(|signer| signer.join().unwrap()).collect()
    });
    assert_eq!((kept.len(), nonces_kept(db)), (1, [1, 1]));
}

/// Signing waits for whoever records or claims, and then sees that its turn is over.
#[test]
fn a_turn_that_ends_meanwhile_is_seen() {
    let db = Database::postgres();
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    other.batch_execute("begin; update lanes set epoch = epoch + 1").unwrap();
    let kept = thread::scope(|scope| {
        let signer = scope.spawn(|| store.sign(&taken, 0));
        let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
        wait_until_blocked(&mut watcher, "lock_lanes");
        other.batch_execute("commit").unwrap();
        signer.join().unwrap()
    });
    assert_eq!((kept, nonces_kept(&db)), (None, [0, 0]));
}

/// A nonce without bytes would never be filled, and bytes without a nonce might be sent.
#[test]
fn a_connection_that_breaks_while_signing_keeps_neither_nonce_nor_bytes() {
    let db = Database::postgres();
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let mut cut = |nonce| {
        let others = "select pg_terminate_backend(pid) from pg_stat_activity
                      where application_name = current_setting('application_name')
                          and pid <> pg_backend_pid()";
        db.execute(others).unwrap();
        Ok(signed(nonce, 100))
    };
    let error = store.assign_nonce(&turn(&taken), 5, &mut cut).unwrap_err();
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
    assert_eq!(nonces_kept(&db), [0, 0]);
    assert_eq!(store.sign(&taken, 5).unwrap().signed.nonce, 5);
}
