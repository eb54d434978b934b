use grid_batch_core::{BatchState, Decision, LedgerStatus, Outcome};
use grid_batch_withdrawals::{NonceOutcome, SigningStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, signed, turn, withdrawal};
use crate::fixture::{Database, StoreExt, on_both, service};

on_both! {
    a_withdrawal_that_was_made_has_the_pools_id,
    a_withdrawal_that_came_to_nothing_has_a_reason,
    a_withdrawal_under_way_tells_all_that_was_signed,
    a_withdrawal_that_a_person_says_was_made_has_neither_id_nor_reason,
    a_withdrawal_tells_how_many_are_before_it,
}

fn a_withdrawal_that_was_made_has_the_pools_id(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let made = NonceOutcome::Withdrawn { withdrawal_id: "77".to_owned() };
    store.spend_as(ACCOUNT, nonce, made.clone());
    store.accept_and(&taken, LedgerStatus::Committed);

    let told = store.told(1);
    assert_eq!(told.batch.progress.state, BatchState::Committed);
    assert_eq!((told.nonce.unwrap().outcome, told.fail_reason), (Some(made), None));
    assert_eq!(told.ahead, Some(0));
}

fn a_withdrawal_that_came_to_nothing_has_a_reason(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.refuse(&store.take_one(ACCOUNT), "the pool is empty");
    let told = store.told(1);
    assert_eq!(told.batch.progress.state, BatchState::Invalid);
    assert_eq!((told.fail_reason.as_deref(), told.nonce), (Some("the pool is empty"), None));
}

fn a_withdrawal_under_way_tells_all_that_was_signed(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    let signed_at = db.now();
    store.replace_transaction(&turn(&taken), signed(nonce, 200)).unwrap().unwrap();
    let sent_at = db.later(1);
    store.mark_sent(&signed(nonce, 200).hash, Some("replacement underpriced")).unwrap();
    store.note(&service(ACCOUNT), nonce, Some("mined in block 5")).unwrap();

    let open = store.told(1).nonce.unwrap();
    assert_eq!((open.nonce, open.generation, open.assigned_at), (nonce, 1, signed_at));
    assert_eq!((open.note.as_deref(), open.outcome), (Some("mined in block 5"), None));
    let [first, second] = open.transactions.try_into().unwrap();
    assert_eq!((first.signed, first.sent_at), (signed(nonce, 100), None));
    assert_eq!((second.signed, second.sent_at), (signed(nonce, 200), Some(sent_at)));
    assert_eq!(second.last_error.as_deref(), Some("replacement underpriced"));
}

fn a_withdrawal_that_a_person_says_was_made_has_neither_id_nor_reason(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let (taken, _) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "the nonce was used elsewhere");
    store.decide(&taken.service_id, &taken.batch_id, Decision::Committed).unwrap();

    let told = store.told(1);
    assert_eq!(told.batch.progress.state, BatchState::Committed);
    assert_eq!((told.nonce.unwrap().outcome, told.fail_reason), (None, None));
}

fn a_withdrawal_tells_how_many_are_before_it(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    assert_eq!([1, 2, 3].map(|number| store.told(number).ahead), [Some(0), Some(1), Some(2)]);
    store.commit_next(ACCOUNT);
    assert_eq!(store.told(3).ahead, Some(1));
}
