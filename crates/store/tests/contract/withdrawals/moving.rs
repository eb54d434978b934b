//! Withdrawals of a pool that has another gas admin now.

use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{
    AheadCount, MoveObstacle, MoveStep, NonceOutcome, OpenWithdrawals, SigningStore, WithdrawalId,
    WithdrawalStore,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal, withdrawal_id};
use crate::fixture::{
    Database, StoreExt, TestStore, by_program, on_both, service, wait_until_blocked,
};

on_both! {
    unsigned_withdrawals_move_in_order,
    withdrawals_move_in_bounded_steps,
    signed_withdrawal_stays_at_its_account,
    refused_withdrawal_stays_until_its_end_is_recorded,
    withdrawal_whose_nonce_was_used_elsewhere_moves,
    nothing_overtakes_a_withdrawal_with_a_submitter,
    nothing_is_signed_for_a_moved_attempt,
    held_withdrawals_stay_until_released,
    withdrawals_of_a_restored_database_stay,
    moved_withdrawal_has_the_nonces_of_its_account,
    cancelled_withdrawal_stays_cancelled,
    withdrawals_of_other_pools_stay,
}

/// The present gas admin of the pool of all test withdrawals.
const PRESENT: &str = "eip155:1:0x0b";

fn present(_: &str) -> Option<ServiceId> {
    Some(service(PRESENT))
}

fn step(store: &TestStore, after: Option<Timestamp>, count: usize) -> MoveStep {
    store.move_withdrawals(&service(ACCOUNT), &present, after, count, &by_program()).unwrap()
}

/// Moves all withdrawals that can be moved.
fn move_all(store: &TestStore) -> MoveStep {
    let plan = store.withdrawals_to_move(&service(ACCOUNT), &present, None, 100).unwrap();
    let moved = step(store, None, 100);
    assert_eq!(plan, moved);
    moved
}

fn moved(step: &MoveStep) -> Vec<WithdrawalId> {
    step.moved.iter().map(|it| it.id).collect()
}

fn kept(step: &MoveStep) -> Vec<(WithdrawalId, MoveObstacle)> {
    step.kept.iter().map(|(it, why)| (it.id, *why)).collect()
}

fn schedule(store: &TestStore, count: u128) -> Vec<WithdrawalId> {
    let all: Vec<_> = (1..=count).map(|number| withdrawal(ACCOUNT, number)).collect();
    store.schedule_all(&all);
    all.iter().map(|withdrawal| withdrawal.id).collect()
}

fn open(store: &TestStore) -> Vec<(String, u64)> {
    let open = store.open_withdrawals().unwrap().into_iter();
    open.map(|OpenWithdrawals { service_id, open, .. }| (service_id.to_string(), open)).collect()
}

fn unsigned_withdrawals_move_in_order(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 3);
    let scheduled_at = store.details_of(2).created_at;
    store.schedule_all(&[withdrawal(PRESENT, 9)]);
    store.outcome(&store.take_one(ACCOUNT), Outcome::Parked);
    assert_eq!(open(&store), [(ACCOUNT.to_owned(), 3), (PRESENT.to_owned(), 1)]);
    assert_eq!(moved(&move_all(&store)), ids);

    assert_eq!(open(&store), [(PRESENT.to_owned(), 4)]);
    let depths = [ACCOUNT, PRESENT].map(|account| store.depth(&service(account)).unwrap());
    assert_eq!(depths, [0, 4]);
    let details = store.details_of(2);
    assert_eq!((details.generation, details.ahead), (2, Some(AheadCount::exactly(2))));
    assert_eq!((details.created_at, details.fail_reason), (scheduled_at, None));
    assert_eq!(details.withdrawal.service_id, service(PRESENT));
    assert_eq!(details.batch.progress.state, BatchState::New);

    let order = [9, 1, 2, 3].map(|number| withdrawal_id(number).to_string());
    for id in order {
        let taken = store.take_one(PRESENT);
        assert!(taken.batch_id.to_string().starts_with(&id));
        assert!(store.sign(&taken, 0).is_some());
        store.accept_and(&taken, LedgerStatus::Committed);
    }
    // A repeated request finds the withdrawal, whatever gas admin it names.
    store.schedule(&[withdrawal(ACCOUNT, 1)]).unwrap().remove(0).unwrap();
    assert_eq!(open(&store), []);
    assert_eq!(move_all(&store), MoveStep::default());
}

fn withdrawals_move_in_bounded_steps(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 5);
    let (mut after, mut all) = (None, Vec::new());
    for (expected, is_last) in [(2, false), (2, false), (1, true)] {
        let step = step(&store, after, 2);
        assert_eq!((step.moved.len(), step.next.is_none()), (expected, is_last));
        all.extend(moved(&step));
        after = step.next;
    }
    assert_eq!(all, ids);
    assert_eq!(store.take_one(PRESENT).batch_id, ids[0].batch_id(2));
}

fn signed_withdrawal_stays_at_its_account(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 3);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::NotSent);
    let step = move_all(&store);
    assert_eq!(
        (moved(&step), kept(&step)),
        (ids[1..].to_vec(), vec![(ids[0], MoveObstacle::Signed)])
    );

    db.later(100_000);
    let taken = store.take_one(ACCOUNT);
    assert_eq!(
        store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap().withdrawal_id,
        ids[0]
    );
    store.close_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    store.accept_and(&taken, LedgerStatus::Committed);
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 0);
}

/// Its nonce was closed together with that of the previous one.
fn refused_withdrawal_stays_until_its_end_is_recorded(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 4);
    let (taken, _) = store.take_and_sign(ACCOUNT);
    store.outcome(&taken, Outcome::Accepted);
    let following = store.following_payments(&taken.service_id, &taken.batch_id, 10);
    let ahead = vec![signed(1, 100), signed(2, 100)];
    assert_eq!(store.sign_following(&following.unwrap().unwrap(), ahead), Ok(true));
    let outcomes = [NonceOutcome::Reverted, NonceOutcome::Reverted, NonceOutcome::Cancelled];
    for (nonce, outcome) in (0..).zip(outcomes) {
        store.close_as(ACCOUNT, nonce, outcome);
    }
    let step = move_all(&store);
    let signed = |id: &WithdrawalId| (*id, MoveObstacle::Signed);
    assert_eq!(kept(&step), ids[..3].iter().map(signed).collect::<Vec<_>>());
    assert_eq!(moved(&step), ids[3..]);
    assert_eq!(store.details_of(2).generation, 1);
}

fn withdrawal_whose_nonce_was_used_elsewhere_moves(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 1);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, NonceOutcome::UsedElsewhere);
    store.outcome(&taken, Outcome::NotSent);
    assert_eq!(moved(&move_all(&store)), ids);
}

fn nothing_overtakes_a_withdrawal_with_a_submitter(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 2);
    let taken = store.take_one(ACCOUNT);
    let step = move_all(&store);
    assert_eq!((moved(&step), kept(&step)), (vec![], vec![(ids[0], MoveObstacle::Submitting)]));
    store.outcome(&taken, Outcome::Parked);
    assert_eq!(moved(&move_all(&store)), ids);
}

/// A round locks lanes but not services.
#[test]
fn move_waits_for_a_round_that_takes_the_next_one() {
    let db = Database::postgres();
    let store = db.open();
    let ids = schedule(&store, 2);
    store.outcome(&store.take_one(ACCOUNT), Outcome::Parked);
    let mut round = PgConnection::establish(&db.postgres_url()).unwrap();
    let take = "begin; update lanes set submitted = true, dlt_status = null,
                    attempts = attempts + 1, submitted_at = 1, next_try_at = null";
    round.batch_execute(take).unwrap();
    let step = thread::scope(|scope| {
        let mover = scope.spawn(|| step(&store, None, 100));
        let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
        wait_until_blocked(&mut watcher, "lock_lanes");
        round.batch_execute("commit").unwrap();
        mover.join().unwrap()
    });
    assert_eq!((moved(&step), kept(&step)), (vec![], vec![(ids[0], MoveObstacle::Submitting)]));
}

fn nothing_is_signed_for_a_moved_attempt(db: &Database) {
    let store = db.open();
    schedule(&store, 1);
    let taken = store.take_one(ACCOUNT);
    store.outcome(&taken, Outcome::Parked);
    move_all(&store);
    assert_eq!(store.sign(&taken, 0), None);
    assert_eq!(store.payment(&taken.service_id, &taken.batch_id).unwrap(), None);
    assert!(store.sign(&store.take_one(PRESENT), 0).is_some());
}

fn held_withdrawals_stay_until_released(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 3);
    for id in &ids[..2] {
        store.hold_batch(&service(ACCOUNT), &id.batch_id(1), "looked at").unwrap();
    }
    let held = |id| (id, MoveObstacle::Held);
    let step = move_all(&store);
    assert_eq!((moved(&step), kept(&step)), (vec![ids[2]], vec![held(ids[0]), held(ids[1])]));
    for id in &ids[..2] {
        store.release_batch(&service(ACCOUNT), &id.batch_id(1), None).unwrap();
    }
    assert_eq!(moved(&move_all(&store)), ids[..2]);
}

fn withdrawals_of_a_restored_database_stay(db: &Database) {
    let store = db.open();
    let ids = schedule(&store, 2);
    db.restored().mark_restored(true, &by_program()).unwrap();
    let in_doubt = |id: &WithdrawalId| (*id, MoveObstacle::InDoubt);
    store.schedule_all(&[withdrawal(ACCOUNT, 3)]);
    let step = move_all(&store);
    assert_eq!(kept(&step), ids.iter().map(in_doubt).collect::<Vec<_>>());
    assert_eq!(moved(&step), [withdrawal_id(3)]);
}

/// The nonces of accounts are independent, so those of the present account may be lower.
fn moved_withdrawal_has_the_nonces_of_its_account(db: &Database) {
    let store = db.open();
    schedule(&store, 1);
    let taken = store.take_one(ACCOUNT);
    let nonce = store.sign(&taken, 7).unwrap().signed.nonce;
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.reject(&taken, "the former gas admin has no right");
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    move_all(&store);
    let taken = store.take_one(PRESENT);
    assert_eq!(store.sign(&taken, 2).unwrap().signed.nonce, 2);
    let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    assert_eq!(payment.nonce.map(|it| it.nonce), Some(2));
    assert_eq!(store.details_of(1).nonce.map(|it| (it.nonce, it.generation)), Some((2, 3)));
    // The former account still knows what was signed there.
    assert_eq!(store.next_nonce(&service(ACCOUNT)).unwrap(), Some(8));
}

fn cancelled_withdrawal_stays_cancelled(db: &Database) {
    let store = db.open();
    schedule(&store, 1);
    store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    move_all(&store);
    assert!(store.details_of(1).cancelled_at.is_some());
    assert_eq!(store.sign(&store.take_one(PRESENT), 0), None);
}

fn withdrawals_of_other_pools_stay(db: &Database) {
    let store = db.open();
    schedule(&store, 1);
    for unchanged in [None, Some(service(ACCOUNT))] {
        let gas_admin = |_: &str| unchanged.clone();
        let step =
            store.move_withdrawals(&service(ACCOUNT), &gas_admin, None, 10, &by_program()).unwrap();
        assert_eq!(step, MoveStep::default());
    }
    assert_eq!(open(&store), [(ACCOUNT.to_owned(), 1)]);
}

/// Intake locks the services of its batches in the order of their ids.
#[test]
fn services_are_locked_in_order_before_withdrawals_move() {
    let db = Database::postgres();
    let store = db.open();
    let (from, to) = (PRESENT, ACCOUNT);
    store.schedule_all(&[withdrawal(from, 1), withdrawal(to, 2)]);
    db.execute(
        "create table seen (locked boolean);
         create function see() returns trigger language plpgsql as
             'begin
                  insert into seen select s.xmax::text::bigint = txid_current() from services s
                  where s.service_id = new.service_id;
                  return new;
              end';
         create trigger see before insert on services for each row execute function see();",
    )
    .unwrap();
    let gas_admin = |_: &str| Some(service(to));
    let step = store.move_withdrawals(&service(from), &gas_admin, None, 10, &by_program()).unwrap();
    assert_eq!(moved(&step), [withdrawal_id(1)]);
    assert_eq!(db.number("select count(*) as number from seen where locked"), 1);
    assert_eq!(db.number("select count(*) as number from seen where not locked"), 0);
}
