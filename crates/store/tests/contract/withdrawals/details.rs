use grid_batch_core::batches::{BatchState, Decision, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::Ahead;
use grid_batch_withdrawals::{AheadCount, NonceOutcome, SigningStore, WithdrawalState};

use super::fixture::{
    ACCOUNT, WithdrawalsExt, attempt_of, exactly, signed, withdrawal, withdrawal_id,
};
use crate::fixture::{Database, StoreExt, on_both, service};

on_both! {
    completed_withdrawal_has_the_pools_id,
    failed_withdrawal_has_a_reason,
    withdrawal_details_include_signed_transactions,
    withdrawal_decided_committed_has_no_id_or_reason,
    withdrawal_details_count_the_batches_ahead,
    count_of_the_batches_ahead_ends_at_its_limit,
    held_withdrawal_behind_another_is_shown_as_held,
}

fn completed_withdrawal_has_the_pools_id(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let made = NonceOutcome::Withdrawn { withdrawal_id: "77".to_owned() };
    store.close_as(ACCOUNT, nonce, made.clone());
    store.accept_and(&taken, LedgerStatus::Committed);

    let details = store.details_of(1);
    assert_eq!(details.batch.progress.state, BatchState::Committed);
    assert_eq!((details.nonce.unwrap().outcome, details.fail_reason), (Some(made), None));
    assert_eq!(details.ahead, exactly(0));
}

fn failed_withdrawal_has_a_reason(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.reject(&store.take_one(ACCOUNT), "the pool is empty");
    let details = store.details_of(1);
    assert_eq!(details.batch.progress.state, BatchState::Invalid);
    assert_eq!((details.fail_reason.as_deref(), details.nonce), (Some("the pool is empty"), None));
}

fn withdrawal_details_include_signed_transactions(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let signed_at = db.now();
    store.replace_transaction(&attempt_of(&taken), signed(nonce, 200)).unwrap().unwrap();
    let sent_at = db.later(1);
    store.mark_sent(&signed(nonce, 200).hash, Some("replacement underpriced")).unwrap();
    store.note(&service(ACCOUNT), nonce, Some("mined in block 5")).unwrap();

    let open = store.details_of(1).nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.assigned_at), (nonce, 1, signed_at));
    assert_eq!((open.note.as_deref(), open.outcome), (Some("mined in block 5"), None));
    let [first, second] = open.transactions.try_into().unwrap();
    assert_eq!((first.signed, first.sent_at), (signed(nonce, 100), None));
    assert_eq!((second.signed, second.sent_at), (signed(nonce, 200), Some(sent_at)));
    assert_eq!(second.last_error.as_deref(), Some("replacement underpriced"));
}

fn withdrawal_decided_committed_has_no_id_or_reason(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, _) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "the nonce was used elsewhere");
    store.decide(&taken.service_id, &taken.batch_id, taken.attempt, Decision::Committed).unwrap();

    let details = store.details_of(1);
    assert_eq!(details.batch.progress.state, BatchState::Committed);
    assert_eq!((details.nonce.unwrap().outcome, details.fail_reason), (None, None));
}

fn withdrawal_details_count_the_batches_ahead(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let ahead = [1, 2, 3].map(|number| store.details_of(number).ahead);
    assert_eq!(ahead, [0, 1, 2].map(exactly));
    store.commit_next(ACCOUNT);
    assert_eq!(store.details_of(3).ahead, exactly(1));
}

fn count_of_the_batches_ahead_ends_at_its_limit(db: &Database) {
    let store = db.open();
    let limit = Ahead::MAX_COUNTED;
    let all: Vec<_> = (0..limit + 3).map(|number| withdrawal(ACCOUNT, number.into())).collect();
    store.schedule_all(&all);
    let ahead = |number: u64| store.details_of(number.into()).ahead;
    assert_eq!(ahead(limit), exactly(limit));
    let more = AheadCount { count: limit, more: true };
    assert_eq!([1, 2].map(|number| ahead(limit + number)), [Some(more); 2]);
}

fn held_withdrawal_behind_another_is_shown_as_held(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    let batch_id = withdrawal_id(2).batch_id(1);
    store.hold_batch(&service(ACCOUNT), &batch_id, "look first").unwrap();
    let details = store.details_of(2);
    assert_eq!(WithdrawalState::of(&details), WithdrawalState::Held);
    assert!(details.batch.held.unwrap().reason.ends_with("look first"));
    assert_eq!(WithdrawalState::of(&store.details_of(1)), WithdrawalState::Scheduled);
}
