use grid_batch_core::Hex;
use grid_batch_core::events::{EventFilter, EventPosition, EventStore, EventWithdrawal};
use grid_batch_withdrawals::{SigningStore, WithdrawalStore};

use super::fixture::{ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, batch, by_program, on_both};

on_both! {
    event_names_the_withdrawal_and_the_transaction_with_the_highest_fee,
    event_of_another_generation_has_its_own_transaction,
    event_of_another_batch_has_no_withdrawal,
}

/// The withdrawal of the latest event.
fn latest(store: &TestStore) -> Option<EventWithdrawal> {
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 100).unwrap().unwrap();
    page.events.into_iter().last().unwrap().event.withdrawal
}

fn told(number: u128, hash: Option<[u8; 32]>) -> Option<EventWithdrawal> {
    let withdrawal = withdrawal(ACCOUNT, number);
    Some(EventWithdrawal {
        id: withdrawal.id.to_string(),
        is_call: false,
        pool: withdrawal.pool,
        amount: withdrawal.amount,
        transaction_hash: hash.map(|hash| format!("0x{}", Hex(&hash))),
    })
}

fn event_names_the_withdrawal_and_the_transaction_with_the_highest_fee(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    assert_eq!(latest(&store), told(1, None));
    let taken = store.take_one(ACCOUNT);
    let first = store.sign(&taken, 0).unwrap().signed;
    assert_eq!(latest(&store), told(1, Some(first.hash)));
    let dearer = signed(first.nonce, first.max_fee * 2);
    store.replace_transaction(&attempt_of(&taken), dearer.clone()).unwrap().unwrap();
    assert_eq!(latest(&store), told(1, Some(dearer.hash)));
}

fn event_of_another_generation_has_its_own_transaction(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    store.reject(&store.take_one(ACCOUNT), "the pool is empty");
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(latest(&store), told(1, None));
    let transaction = store.sign(&store.take_one(ACCOUNT), 0).unwrap().signed;
    assert_eq!(latest(&store), told(1, Some(transaction.hash)));
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 1).unwrap().unwrap();
    assert_eq!(page.events[0].event.withdrawal, told(1, None), "nothing was signed for the first");
}

fn event_of_another_batch_has_no_withdrawal(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    assert_eq!(latest(&store), None);
}
