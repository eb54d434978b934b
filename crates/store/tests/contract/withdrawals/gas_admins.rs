//! The stored data about the queue of a gas admin.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_withdrawals::{GasAdminQueue, Withdrawal};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, on_both, service};

on_both! {
    open_withdrawals_are_counted_by_what_they_wait_for,
    last_failure_of_each_pool_is_shown,
    gas_admin_without_withdrawals_has_an_empty_queue,
}

fn queue(store: &TestStore) -> GasAdminQueue {
    store.gas_admin_queues(&[service(ACCOUNT)]).unwrap().remove(0)
}

/// The numbers of open, waiting, parked, held and running withdrawals.
fn counts(store: &TestStore) -> [u64; 5] {
    let queue = queue(store);
    [queue.open, queue.waiting, queue.parked, queue.held, queue.in_progress]
}

fn open_withdrawals_are_counted_by_what_they_wait_for(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let scheduled_at = queue(&store).oldest_scheduled_at.unwrap();
    assert_eq!(
        (counts(&store), scheduled_at),
        ([3, 3, 0, 0, 0], store.details_of(1).batch.created_at)
    );

    store.outcome(&store.take_one(ACCOUNT), Outcome::Parked);
    assert_eq!(counts(&store), [3, 2, 1, 0, 0]);
    db.later(3_600);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(counts(&store), [3, 2, 0, 0, 1]);
    store.outcome(&taken, Outcome::Ambiguous);
    store.hold(&taken, "nothing can be proved");
    assert_eq!(counts(&store), [3, 2, 0, 1, 0]);
    store.status(&taken, LedgerStatus::Committed);
    assert_eq!(counts(&store), [2, 2, 0, 0, 0]);
}

fn last_failure_of_each_pool_is_shown(db: &Database) {
    let store = db.open();
    let of_pool =
        |pool: &str, number| Withdrawal { pool: pool.to_owned(), ..withdrawal(ACCOUNT, number) };
    store.schedule_all(&[of_pool("a", 1), of_pool("a", 2), of_pool("b", 3), of_pool("b", 4)]);
    for reason in ["first", "second", "third"] {
        db.later(1);
        store.reject(&store.take_one(ACCOUNT), reason);
    }
    store.commit_next(ACCOUNT);
    let failures = queue(&store).last_failures;
    let shown: Vec<_> = failures
        .iter()
        .map(|failure| (failure.pool.as_str(), failure.withdrawal_id, failure.reason.as_deref()))
        .collect();
    let expected =
        [("a", withdrawal_id(2), Some("second")), ("b", withdrawal_id(3), Some("third"))];
    assert_eq!((shown, failures[1].failed_at), (expected.to_vec(), db.now()));
}

fn gas_admin_without_withdrawals_has_an_empty_queue(db: &Database) {
    let store = db.open();
    assert_eq!((counts(&store), queue(&store).oldest_scheduled_at), ([0; 5], None));
}
