//! Withdrawals that are scheduled in one commit: their order, their positions, and the limit of a queue.

use std::cmp::Reverse;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_store::{IntakeLimits, StoreOptions};
use grid_batch_withdrawals::{
    ScheduleOutcome, WithdrawalConflict, WithdrawalFilter, WithdrawalStore,
};

use super::fixture::{ACCOUNT, KNOWN, WithdrawalsExt, is_stored, withdrawal, withdrawal_id};
use crate::fixture::{Database, StoreExt, TestStore, batch, on_both, service};

on_both! {
    answer_has_the_stored_time_and_position,
    created_at_follows_the_queue_when_the_clock_does_not,
    list_has_the_order_of_the_queue,
    queue_of_a_gas_admin_is_limited,
    ended_withdrawals_free_their_places,
}

fn scheduled(store: &TestStore, number: u128) -> ScheduleOutcome {
    store.schedule(&[withdrawal(ACCOUNT, number)]).unwrap().remove(0).unwrap()
}

fn answer_has_the_stored_time_and_position(db: &Database) {
    let store = db.open();
    store.add_all(&[batch(ACCOUNT, 9)]);
    let answers = store.schedule(&[1, 2, 1, 3].map(|number| withdrawal(ACCOUNT, number))).unwrap();
    for (at, number, expected) in [(0, 1, 1), (1, 2, 2), (3, 3, 3)] {
        let created_at = store.details_of(number).created_at;
        assert_eq!(answers[at], Ok(ScheduleOutcome::Stored { created_at, ahead: expected }));
    }
    assert_eq!(answers[2], KNOWN);
    store.commit_next(ACCOUNT);
    assert!(matches!(scheduled(&store, 4), ScheduleOutcome::Stored { ahead: 3, .. }));
}

/// The clock of the store stands still, as if it had gone back between requests.
fn created_at_follows_the_queue_when_the_clock_does_not(db: &Database) {
    let store = db.open();
    store.schedule_all(&[3, 1].map(|number| withdrawal(ACCOUNT, number)));
    store.schedule_all(&[2, 4].map(|number| withdrawal(ACCOUNT, number)));
    let times = [3, 1, 2, 4].map(|number| store.details_of(number).created_at);
    assert!(times.is_sorted_by(|earlier, later| earlier < later), "{times:?}");
    for number in 1..=4 {
        let details = store.details_of(number);
        assert_eq!(details.created_at, details.batch.created_at);
    }
}

fn list_has_the_order_of_the_queue(db: &Database) {
    let store = db.open();
    store.schedule_all(&[9, 3, 7, 1, 5].map(|number| withdrawal(ACCOUNT, number)));
    let page = store.withdrawals(&WithdrawalFilter::default(), None, 9).unwrap().withdrawals;
    let ids: Vec<_> = page.iter().map(|details| details.withdrawal.id).collect();
    assert_eq!(ids, [5, 1, 7, 3, 9].map(withdrawal_id));
    assert!(page.is_sorted_by_key(|details| Reverse(details.created_at)));
}

fn open_with_limit(db: &Database, open_batches: u64) -> TestStore {
    let intake_limits = IntakeLimits { open_batches, ..IntakeLimits::default() };
    db.open_with(StoreOptions { intake_limits, ..db.options() })
}

fn queue_of_a_gas_admin_is_limited(db: &Database) {
    let store = open_with_limit(db, 2);
    let request = [1, 2, 3, 1].map(|number| withdrawal(ACCOUNT, number));
    let answers = store.schedule(&request).unwrap();
    let full = WithdrawalConflict::QueueFull { service_id: service(ACCOUNT), open: 2, limit: 2 };
    assert_eq!((is_stored(&answers[0]), is_stored(&answers[1])), (true, true));
    assert_eq!(answers[2..], [Err(full.clone()), KNOWN]);
    let others = [withdrawal(ACCOUNT, 4), withdrawal("other", 5)];
    let answers = store.schedule(&others).unwrap();
    assert_eq!((&answers[0], is_stored(&answers[1])), (&Err(full), true));
    assert_eq!(store.withdrawal(&withdrawal_id(3)).unwrap(), None);
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 2);
}

fn ended_withdrawals_free_their_places(db: &Database) {
    let store = open_with_limit(db, 1);
    for number in 1..=3 {
        store.schedule_all(&[withdrawal(ACCOUNT, number)]);
        let refused = store.schedule(&[withdrawal(ACCOUNT, 99)]).unwrap();
        assert!(matches!(refused[0], Err(WithdrawalConflict::QueueFull { .. })), "{refused:?}");
        store.commit_next(ACCOUNT);
    }
}

/// Another transaction keeps the rows of one gas admin locked, but the others do not wait.
#[test]
fn locked_gas_admin_is_left_out_of_a_group() {
    let db = Database::postgres();
    let store = db.open();
    store.schedule_all(&[withdrawal("a", 1)]);
    let mut other = PgConnection::establish(&db.postgres_url()).unwrap();
    other.batch_execute("begin; update services set added = added where service_id = 'a'").unwrap();
    let answers = store.schedule(&[withdrawal("a", 2), withdrawal("b", 3)]).unwrap();
    let locked = WithdrawalConflict::ServiceLocked { service_id: service("a") };
    assert_eq!((&answers[0], is_stored(&answers[1])), (&Err(locked), true));
    other.batch_execute("rollback").unwrap();
    assert!(is_stored(&store.schedule(&[withdrawal("a", 2)]).unwrap()[0]));
}
