use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_withdrawals::{BatchAttempt, NewSignedTransaction, NonceOutcome, SigningStore};

use crate::{
    fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal},
};

on_both! {
    nonce_and_signed_transaction_are_stored_together,
    nonces_are_consecutive_from_the_chains_next,
    each_account_has_its_own_nonces,
    failed_signing_assigns_no_nonce,
    signing_with_another_nonce_is_an_error,
    signing_needs_the_current_attempt,
    nothing_is_signed_for_a_batch_proved_committed,
    former_owner_cannot_sign,
    no_second_nonce_while_the_first_may_pay,
    failed_nonce_allows_another,
    batch_without_withdrawal_is_not_signed,
    numbers_out_of_range_assign_no_nonce,
    one_of_concurrent_signers_signs,
}

fn nonces_kept(db: &Database) -> [i64; 2] {
    ["account_nonces", "signed_transactions"]
        .map(|table| db.number(&format!("select count(*) as number from {table}")))
}

fn nonce_and_signed_transaction_are_stored_together(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let kept = store.sign(&taken, 5).unwrap();
    assert_eq!((&kept.signed, kept.signed_at), (&signed(5, 100), db.now()));
    assert_eq!((kept.sent_at, &kept.last_error), (None, &None));
    let open = db.open().payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().nonce;
    assert_eq!(open.unwrap().transactions, [kept]);
}

fn nonces_are_consecutive_from_the_chains_next(db: &Database) {
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

fn each_account_has_its_own_nonces(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal("a", 1), withdrawal("b", 2)]);
    let nonces = ["a", "b"].map(|account| {
        let taken = store.take_one(account);
        let mut other = |nonce| {
            Ok(NewSignedTransaction { hash: [account.as_bytes()[0]; 32], ..signed(nonce, 1) })
        };
        store.assign_nonce(&attempt_of(&taken), 4, &mut other).unwrap().unwrap().signed.nonce
    });
    assert_eq!(nonces, [4, 4]);
}

fn failed_signing_assigns_no_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let no_key = BatchError::InvalidAnswer("there is no key".to_owned());
    let mut refuse = |_| -> BatchResult<NewSignedTransaction> { Err(no_key.clone()) };
    assert_eq!(store.assign_nonce(&attempt_of(&taken), 5, &mut refuse), Err(no_key.clone()));
    assert_eq!(nonces_kept(db), [0, 0]);
    assert_eq!(store.sign(&taken, 5).unwrap().signed.nonce, 5);
}

fn signing_with_another_nonce_is_an_error(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let attempt = attempt_of(&store.take_one(ACCOUNT));
    let error =
        store.assign_nonce(&attempt, 5, &mut |_| Ok(signed(6, 100))).unwrap_err().to_string();
    assert!(error.contains("nonce 6") && error.contains('5'), "{error}");
    assert_eq!(nonces_kept(db), [0, 0]);
}

fn signing_needs_the_current_attempt(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let first = store.take_one(ACCOUNT);
    let BatchAttempt { attempt_id, .. } = attempt_of(&first);
    let never = &mut |_| -> BatchResult<NewSignedTransaction> { panic!("no attempt may sign") };
    for other in [
        BatchAttempt { batch_id: withdrawal(ACCOUNT, 2).id.batch_id(1), ..attempt_of(&first) },
        BatchAttempt { batch_id: withdrawal(ACCOUNT, 3).id.batch_id(1), ..attempt_of(&first) },
        BatchAttempt { service_id: service("other"), ..attempt_of(&first) },
        BatchAttempt {
            attempt_id: AttemptId { attempt: attempt_id.attempt + 1, ..attempt_id },
            ..attempt_of(&first)
        },
        BatchAttempt {
            attempt_id: AttemptId { epoch: attempt_id.epoch + 1, ..attempt_id },
            ..attempt_of(&first)
        },
    ] {
        assert_eq!(store.assign_nonce(&other, 0, never), Ok(None), "{other:?}");
    }
    store.outcome(&first, Outcome::NotSent);
    assert_eq!(store.assign_nonce(&attempt_of(&first), 0, never), Ok(None));
    let second = store.take_one(ACCOUNT);
    assert_eq!(store.assign_nonce(&attempt_of(&first), 0, never), Ok(None));
    assert!(store.sign(&second, 0).is_some());
}

fn nothing_is_signed_for_a_batch_proved_committed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    store.status(&taken, LedgerStatus::Committed);
    assert_eq!(store.sign(&taken, 0), None);
}

fn former_owner_cannot_sign(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    db.pass_full_expiry(store.worker());
    assert_eq!(db.instance().take(9).unwrap().claims.len(), 1);
    assert_eq!(store.sign(&taken, 0), None);
    assert_eq!(nonces_kept(db), [0, 0]);
}

fn no_second_nonce_while_the_first_may_pay(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    assert_eq!(store.sign(&taken, 9), None);
    store.close_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(store.sign(&taken, 9), None);
    assert_eq!(nonces_kept(db), [1, 1]);
}

fn failed_nonce_allows_another(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, NonceOutcome::UsedElsewhere);
    assert_eq!(store.sign(&taken, 0).unwrap().signed.nonce, nonce + 1);
}

fn batch_without_withdrawal_is_not_signed(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&taken, 0), None);
    assert_eq!(store.payment(&service(ACCOUNT), &id(1)), Ok(None));
}

fn numbers_out_of_range_assign_no_nonce(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let attempt = attempt_of(&store.take_one(ACCOUNT));
    let most = i64::MAX as u128;
    let mut too_dear = |nonce| Ok(signed(nonce, most + 1));
    let error = store.assign_nonce(&attempt, 0, &mut too_dear).unwrap_err().to_string();
    assert!(error.contains("9223372036854775808"), "{error}");
    let mut fits = |nonce| Ok(signed(nonce, most));
    let error = store.assign_nonce(&attempt, u64::MAX, &mut fits).unwrap_err().to_string();
    assert!(error.contains("18446744073709551615"), "{error}");
    assert_eq!(nonces_kept(db), [0, 0]);
    let kept = store.assign_nonce(&attempt, 0, &mut fits).unwrap().unwrap();
    assert_eq!(kept.signed.max_fee, most);
}

fn one_of_concurrent_signers_signs(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let taken = store.take_one(ACCOUNT);
    let kept: Vec<_> = thread::scope(|scope| {
        let signers: Vec<_> = (0..8).map(|_| scope.spawn(|| store.sign(&taken, 0))).collect();
        signers.into_iter().filter_map(|signer| signer.join().unwrap()).collect()
    });
    assert_eq!((kept.len(), nonces_kept(db)), (1, [1, 1]));
}

/// Signing waits for a concurrent change of the lane, and then notices that its attempt is over.
#[test]
fn takeover_during_signing_is_detected() {
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

/// A nonce without a transaction would block the account; a transaction without a nonce might be sent.
#[test]
fn connection_lost_while_signing_stores_nothing() {
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
    let error = store.assign_nonce(&attempt_of(&taken), 5, &mut cut).unwrap_err();
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");
    assert_eq!(nonces_kept(&db), [0, 0]);
    assert_eq!(store.sign(&taken, 5).unwrap().signed.nonce, 5);
}
