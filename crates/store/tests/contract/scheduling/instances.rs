//! Claims of services with several lanes.

use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, ServiceShare, StrategyKind, TakenBatch};
use grid_batch_store::{ClaimOptions, ClaimStore};

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, on_both, service};

on_both! {
    takeover_puts_all_with_the_submitter_in_doubt,
    outcomes_of_a_former_owner_change_nothing,
    new_lanes_have_the_epoch_of_the_claim,
    recovery_finds_all_lanes,
}

mod postgres_only {
    use super::*;

    #[test]
    fn service_with_one_locked_lane_is_left_out() {
        let db = Database::postgres();
        let store = db.open_parallel();
        store.add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "cc")]);
        let taken = store.take_up_to(9);
        let mut other = diesel::PgConnection::establish(&db.postgres_url()).unwrap();
        other.batch_execute("begin; select * from lanes where lane = 2 for update").unwrap();
        let result = store.record(&[crate::fixture::happened(
            &taken[2],
            grid_batch_core::batches::Event::Outcome { attempt: 1, outcome: Outcome::Accepted },
        )]);
        assert!(result.is_err(), "{result:?}");
        assert_eq!(store.locked_services().len(), 1);
        other.batch_execute("rollback").unwrap();
        store.outcome(&taken[2], Outcome::Accepted);
        assert_eq!(store.one(SERVICE, 3).progress.state, BatchState::Pending);
    }

    use diesel::{Connection, connection::SimpleConnection};
}

fn instance(db: &Database) -> ClaimStore {
    if !db.is_postgres() {
        db.forget_lock();
    }
    let store = db.open_parallel().into_store();
    ClaimStore::register(store, ClaimOptions::default()).unwrap()
}

fn take(claims: &ClaimStore, count: usize) -> Vec<TakenBatch> {
    let share = ServiceShare { service_id: service(SERVICE), batches: count };
    claims.take_round(&[share], &mut |_| true).unwrap().batches
}

fn takeover_puts_all_with_the_submitter_in_doubt(db: &Database) {
    let one = instance(db);
    let all: Vec<_> = (1..=100).map(|n| writing(n, &format!("{n:02x}"))).collect();
    one.store().add_all(&all);
    one.take(9).unwrap();
    let taken = take(&one, 100);
    assert_eq!(taken.len(), 100);
    let other = instance(db);
    db.pass_full_expiry(&one);
    let takeover = other.take(9).unwrap();
    assert_eq!((takeover.claims.len(), takeover.in_doubt.len()), (1, 100));
    assert!(take(&other, 100).is_empty());
    assert!(take(&one, 100).is_empty());
}

fn outcomes_of_a_former_owner_change_nothing(db: &Database) {
    let one = instance(db);
    one.store().add_all(&[writing(1, "aa"), writing(2, "bb"), writing(3, "aa")]);
    one.take(9).unwrap();
    let taken = take(&one, 9);
    let other = instance(db);
    db.pass_full_expiry(&one);
    other.take(9).unwrap();
    for taken in &taken {
        one.store().outcome(taken, Outcome::Rejected);
    }
    let state = |number| other.store().one(SERVICE, number).progress.state;
    assert_eq!([1, 2].map(state), [BatchState::InDoubt; 2]);
    let present = TakenBatch { epoch: taken[0].epoch + 1, ..taken[0].clone() };
    other.store().status(&present, LedgerStatus::Committed);
    assert_eq!(numbers(&take(&other, 9)), [3]);
}

fn new_lanes_have_the_epoch_of_the_claim(db: &Database) {
    let one = instance(db);
    one.store().add_all(&[writing(1, "aa")]);
    one.take(9).unwrap();
    one.store().add_all(&[writing(2, "bb")]);
    let taken = take(&one, 9);
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0].epoch, taken[1].epoch);
    assert!(taken[0].epoch > 0);
}

fn recovery_finds_all_lanes(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Parallel, 50);
    let all: Vec<_> = (1..=50).map(|n| writing(n, &format!("{n:02x}"))).collect();
    store.add_all(&all);
    assert_eq!(store.take_up_to(99).len(), 50);
    assert_eq!(store.recover().unwrap(), 50);
    assert_eq!(store.recover().unwrap(), 0);
}
