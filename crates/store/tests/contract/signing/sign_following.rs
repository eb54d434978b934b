use grid_batch_core::batches::{Change, Event, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    ClosedNonce, FollowingPayments, NewSignedTransaction, NonceOutcome, SigningStore,
    WithdrawalFilter, WithdrawalId, WithdrawalState, WithdrawalStore,
};

use crate::{
    fixture::{Database, StoreExt, TestStore, by_program, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal, withdrawal_id},
};

on_both! {
    following_are_those_behind_the_accepted_head,
    nothing_is_signed_behind_one_that_is_not_accepted,
    nothing_is_signed_behind_a_held_batch,
    following_get_the_next_nonces_in_order,
    withdrawal_that_was_signed_ahead_keeps_its_nonce,
    nothing_is_signed_after_another_nonce_was_assigned,
    nothing_is_signed_for_a_withdrawal_cancelled_meanwhile,
    nothing_is_signed_after_the_head_has_ended,
    former_owner_signs_nothing_ahead,
    other_nonces_than_the_next_are_refused,
    held_withdrawal_ends_those_to_sign,
    withdrawals_of_a_restored_database_are_not_signed_ahead,
    open_nonces_get_further_transactions_together,
    replacements_of_a_cancelled_withdrawal_store_none,
    outcomes_are_stored_together,
    conflicting_outcome_stores_none,
    ended_withdrawal_ahead_is_not_unsettled,
    retried_withdrawal_follows_the_others,
    withdrawal_signed_ahead_is_listed_as_pending,
}

/// Schedules withdrawals from 1 to this number, and has the first accepted with nonce 0.
fn accepted_first(store: &TestStore, last: u128) -> TakenBatch {
    let all: Vec<_> = (1..=last).map(|number| withdrawal(ACCOUNT, number)).collect();
    store.schedule_all(&all);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    assert_eq!(nonce, 0);
    store.outcome(&taken, Outcome::Accepted);
    taken
}

fn following(store: &TestStore, head: &TakenBatch) -> FollowingPayments {
    find_following(store, head).unwrap()
}

fn find_following(store: &TestStore, head: &TakenBatch) -> Option<FollowingPayments> {
    store.following_payments(&head.service_id, &head.batch_id, 10).unwrap()
}

fn unsigned(following: &FollowingPayments) -> Vec<u128> {
    let number = |id: WithdrawalId| u128::from_be_bytes(*id.as_bytes());
    following.unsigned().map(|it| number(it.payment.withdrawal_id)).collect()
}

fn transactions(nonces: std::ops::RangeInclusive<u64>) -> Vec<NewSignedTransaction> {
    nonces.map(|nonce| signed(nonce, 100)).collect()
}

fn nonce_of(store: &TestStore, number: u128) -> Option<u64> {
    store.details_of(number).nonce.map(|nonce| nonce.nonce)
}

fn following_are_those_behind_the_accepted_head(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    store.schedule_all(&[withdrawal("other", 5)]);
    let following = following(&store, &head);
    assert_eq!(unsigned(&following), [2, 3, 4]);
    assert!(following.is_under_way);
    assert_eq!((following.next_nonce, following.has_unsettled), (1, false));
    let two = store.following_payments(&head.service_id, &head.batch_id, 2).unwrap().unwrap();
    assert_eq!(unsigned(&two), [2, 3]);
}

fn nothing_is_signed_behind_one_that_is_not_accepted(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let (taken, _) = store.take_and_sign(ACCOUNT);
    assert_eq!(find_following(&store, &taken), None);
    store.outcome(&taken, Outcome::Ambiguous);
    assert_only_followed(&store, &taken);
}

/// Asserts that the withdrawals after the batch are shown, but nothing is signed for them.
fn assert_only_followed(store: &TestStore, head: &TakenBatch) {
    let following = following(store, head);
    assert_eq!((following.is_under_way, unsigned(&following)), (false, vec![2]));
    assert_eq!(store.sign_following(&following, transactions(1..=1)), Ok(false));
}

fn nothing_is_signed_behind_a_held_batch(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 2);
    let before = following(&store, &head);
    db.execute("update lanes set held_at = 1, held_reason = 'held', held_until_decision = true")
        .unwrap();
    assert_only_followed(&store, &head);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(false));
}

fn following_get_the_next_nonces_in_order(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    let before = following(&store, &head);
    assert_eq!(store.sign_following(&before, transactions(1..=2)), Ok(true));
    let nonces = [2, 3, 4].map(|number| nonce_of(&store, number));
    assert_eq!(nonces, [Some(1), Some(2), None]);
    let stored = store.details_of(2).nonce.unwrap();
    assert_eq!((stored.transactions[0].signed.clone(), stored.generation), (signed(1, 100), 1));
    let after = following(&store, &head);
    assert_eq!((unsigned(&after), after.next_nonce), (vec![4], 3));
    assert_eq!(after.in_flight().count(), 2);
}

fn withdrawal_that_was_signed_ahead_keeps_its_nonce(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 2);
    store.sign_following(&following(&store, &head), transactions(1..=1)).unwrap();
    store.status(&head, LedgerStatus::Committed);
    let second = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&second, 0), None, "it has a nonce already");
    let payment = store.payment(&second.service_id, &second.batch_id).unwrap().unwrap();
    assert_eq!(payment.nonce.unwrap().nonce, 1);
    assert_eq!(store.transactions_from(&service(ACCOUNT), 1).unwrap(), [signed(1, 100)]);
}

/// They may have been paid with nonces that are not stored.
fn withdrawals_of_a_restored_database_are_not_signed_ahead(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(true));
    let before = following(&store, &head);
    assert_eq!(unsigned(&before), [3]);
    db.restored().mark_restored(true, &by_program()).unwrap();
    store.schedule_all(&[withdrawal(ACCOUNT, 4)]);
    let event = Event::Evidence { attempt: head.attempt, evidence: Evidence::Present };
    store.record_one(Change::new(head.service_id.clone(), head.batch_id, event));
    let after = following(&store, &head);
    assert_eq!((unsigned(&after), after.in_flight().count()), (vec![], 1));
    assert_eq!(store.sign_following(&before, transactions(2..=2)), Ok(false));
}

fn nothing_is_signed_after_another_nonce_was_assigned(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(true));
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(false));
    assert_eq!(nonce_of(&store, 3), None);
}

fn nothing_is_signed_for_a_withdrawal_cancelled_meanwhile(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    store.cancel_withdrawal(&withdrawal_id(3), &by_program()).unwrap();
    assert_eq!(store.sign_following(&before, transactions(1..=2)), Ok(false));
    assert_eq!([2, 3].map(|number| nonce_of(&store, number)), [None, None]);
    assert_eq!(unsigned(&following(&store, &head)), [2]);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(true));
}

fn nothing_is_signed_after_the_head_has_ended(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    store.status(&head, LedgerStatus::Committed);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(false));
    assert_eq!(find_following(&store, &head), None);
}

fn former_owner_signs_nothing_ahead(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    db.pass_full_expiry(store.worker());
    assert_eq!(db.instance().take(9).unwrap().claims.len(), 1);
    assert_eq!(store.sign_following(&before, transactions(1..=1)), Ok(false));
    assert_eq!(nonce_of(&store, 2), None);
}

fn other_nonces_than_the_next_are_refused(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    let before = following(&store, &head);
    for signed in
        [transactions(2..=3), vec![signed(1, 1), signed(3, 1)], transactions(1..=3), vec![]]
    {
        assert_eq!(store.sign_following(&before, signed), Ok(false));
    }
    assert_eq!(store.next_nonce(&service(ACCOUNT)), Ok(Some(1)));
}

fn held_withdrawal_ends_those_to_sign(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    db.execute(
        "insert into waiting_holds (batch_seq, held_at, held_reason, cause)
         select batch_seq, 1, 'held', 'OPERATOR' from withdrawals where seq = (
             select min(seq) + 2 from withdrawals)",
    )
    .unwrap();
    assert_eq!(unsigned(&following(&store, &head)), [2]);
}

fn closed(nonce: u64, outcome: NonceOutcome) -> ClosedNonce {
    ClosedNonce { nonce, note: format!("note {nonce}"), outcome: Some(outcome), transaction: None }
}

fn withdrawn(id: u64) -> NonceOutcome {
    NonceOutcome::Withdrawn { withdrawal_id: id.to_string() }
}

fn outcomes_are_stored_together(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    store.sign_following(&following(&store, &head), transactions(1..=3)).unwrap();
    let unknown =
        ClosedNonce { nonce: 3, note: "no event".to_owned(), outcome: None, transaction: None };
    let outcomes = [closed(0, withdrawn(7)), closed(1, NonceOutcome::Reverted), unknown];
    for _ in 0..2 {
        store.close_nonces(&service(ACCOUNT), &outcomes).unwrap();
    }
    let stored = |number| {
        let nonce = store.details_of(number).nonce.unwrap();
        (nonce.note, nonce.outcome)
    };
    assert_eq!(stored(1), (Some("note 0".to_owned()), Some(withdrawn(7))));
    assert_eq!(stored(2), (Some("note 1".to_owned()), Some(NonceOutcome::Reverted)));
    assert_eq!(stored(3), (None, None));
    assert_eq!(stored(4), (Some("no event".to_owned()), None));
}

fn conflicting_outcome_stores_none(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 2);
    store.sign_following(&following(&store, &head), transactions(1..=1)).unwrap();
    store.close_as(ACCOUNT, 1, NonceOutcome::Reverted);
    let outcomes = [closed(0, withdrawn(1)), closed(1, withdrawn(2))];
    store.close_nonces(&service(ACCOUNT), &outcomes).unwrap_err();
    assert_eq!(store.details_of(1).nonce.unwrap().outcome, None);
    let unknown = [closed(9, withdrawn(1))];
    store.close_nonces(&service(ACCOUNT), &unknown).unwrap_err();
}

fn ended_withdrawal_ahead_is_not_unsettled(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 2);
    store.sign_following(&following(&store, &head), transactions(1..=1)).unwrap();
    let unsettled = || store.unsettled_nonces(&service(ACCOUNT)).unwrap();
    assert_eq!((unsettled().next, unsettled().stored), (Some(2), vec![]));
    let outcomes = [closed(0, withdrawn(1)), closed(1, withdrawn(2))];
    store.close_nonces(&service(ACCOUNT), &outcomes).unwrap();
    assert_eq!(unsettled().stored, []);
    assert_eq!(find_following(&store, &head).unwrap().in_flight().count(), 0);
}

/// The nonce of its first generation did not pay, so it does not count for the second.
fn retried_withdrawal_follows_the_others(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    store.sign_following(&following(&store, &head), transactions(1..=1)).unwrap();
    let outcomes = [closed(0, withdrawn(1)), closed(1, NonceOutcome::Reverted)];
    store.close_nonces(&service(ACCOUNT), &outcomes).unwrap();
    store.status(&head, LedgerStatus::Committed);
    let second = store.take_one(ACCOUNT);
    store.reject(&second, "the pool refused the withdrawal");
    let third = store.take_one(ACCOUNT);
    store.sign(&third, 0).unwrap();
    store.outcome(&third, Outcome::Accepted);
    store.retry_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    let after = following(&store, &third);
    assert_eq!((unsigned(&after), after.next_nonce), (vec![2], 3));
    assert_eq!(store.sign_following(&after, transactions(3..=3)), Ok(true));
    assert_eq!(nonce_of(&store, 2), Some(3));
}

fn withdrawal_signed_ahead_is_listed_as_pending(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    store.sign_following(&following(&store, &head), transactions(1..=2)).unwrap();
    for nonce in 1..=2 {
        store.mark_sent(&signed(nonce, 100).hash, None).unwrap();
    }
    store.hold_batch(&service(ACCOUNT), &withdrawal_id(3).batch_id(1), "look first").unwrap();
    let listed = |state| -> Vec<WithdrawalId> {
        let filter = WithdrawalFilter { states: [state].into(), ..WithdrawalFilter::default() };
        let page = store.withdrawals(&filter, None, 10).unwrap().withdrawals;
        assert!(page.iter().all(|details| WithdrawalState::of(details) == state), "{page:?}");
        page.into_iter().map(|details| details.withdrawal.id).collect()
    };
    assert_eq!(listed(WithdrawalState::Pending), [withdrawal_id(2), withdrawal_id(1)]);
    assert_eq!(listed(WithdrawalState::Held), [withdrawal_id(3)]);
    assert_eq!(listed(WithdrawalState::Scheduled), [withdrawal_id(4)]);
}

/// Transactions with these nonces, and a higher fee than those of [`transactions`].
fn replacements(nonces: std::ops::RangeInclusive<u64>) -> Vec<NewSignedTransaction> {
    nonces.map(|nonce| signed(nonce, 200)).collect()
}

/// How many transactions each withdrawal from 1 to this number has.
fn transaction_counts(store: &TestStore, last: u128) -> Vec<usize> {
    let nonce = |number| store.details_of(number).nonce;
    (1..=last).map(|number| nonce(number).map_or(0, |it| it.transactions.len())).collect()
}

fn open_nonces_get_further_transactions_together(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 4);
    assert!(store.sign_following(&following(&store, &head), transactions(1..=2)).unwrap());
    let read = following(&store, &head);
    assert!(store.replace_following(&read, replacements(0..=2)).unwrap());
    assert_eq!(transaction_counts(&store, 4), [2, 2, 2, 0]);
    // The last one has no nonce.
    assert!(!store.replace_following(&read, replacements(2..=3)).unwrap());
    store.close_nonce(&head.service_id, 1, &NonceOutcome::Reverted).unwrap();
    assert!(!store.replace_following(&read, vec![signed(1, 300)]).unwrap(), "it is closed");
    store.accept_and(&head, LedgerStatus::Committed);
    assert!(!store.replace_following(&read, vec![signed(2, 300)]).unwrap(), "the head has ended");
    assert_eq!(transaction_counts(&store, 4), [2, 2, 2, 0]);
}

fn replacements_of_a_cancelled_withdrawal_store_none(db: &Database) {
    let store = db.open();
    let head = accepted_first(&store, 3);
    assert!(store.sign_following(&following(&store, &head), transactions(1..=2)).unwrap());
    let read = following(&store, &head);
    store.cancel_withdrawal(&withdrawal_id(3), &by_program()).unwrap();
    assert!(!store.replace_following(&read, replacements(0..=2)).unwrap());
    assert_eq!(transaction_counts(&store, 3), [1, 1, 1]);
    assert!(store.replace_following(&read, replacements(0..=1)).unwrap());
}
