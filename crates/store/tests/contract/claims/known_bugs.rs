//! Bugs that are known from other job queues on databases.

use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, TakenBatch};

use super::fixture::{ClaimExt, sorted};
use crate::fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked};

on_both! {
    takeover_does_not_change_a_batch_that_ended,
    former_owner_cannot_release_the_new_owners_claims,
    former_owner_cannot_record_outcomes_after_takeover,
    duplicate_service_ids_are_taken_once,
    slow_submission_is_not_recovered_while_lease_is_renewed,
    held_batch_does_not_block_other_services,
}

fn takeover_does_not_change_a_batch_that_ended(db: &Database) {
    let [owner, new_owner] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    owner.take_all();
    let [first, _] = ["a::1", "a::2"].map(|name| owner.take_batch(name));
    db.pass_full_expiry(&owner);
    owner.store().outcome(&first, Outcome::Accepted);
    owner.store().status(&first, LedgerStatus::Committed);
    assert_eq!(new_owner.take(9).unwrap().in_doubt, [(service("a::2"), id(2))]);
    assert_eq!(db.state("a::1", 1), BatchState::Committed);
}

fn former_owner_cannot_release_the_new_owners_claims(db: &Database) {
    let [paused, other] = [db.instance(), db.instance()];
    paused.store().add_all(&[batch("a::b", 1)]);
    paused.take_all();
    db.pass_idle_expiry(&paused);
    other.take_all();
    assert_eq!(paused.release_services(&[service("a::b")]).unwrap(), 0);
    assert_eq!(paused.release().unwrap(), 0);
    assert_eq!(db.claimed_by(&other), 1);
    assert_eq!(other.take_batch("a::b").epoch, 2);
}

fn former_owner_cannot_record_outcomes_after_takeover(db: &Database) {
    let [paused, other] = [db.instance(), db.instance()];
    paused.store().add_all(&[batch("a::b", 1), batch("a::b", 2), batch("a::b", 3)]);
    paused.take_all();
    let first = paused.take_batch("a::b");
    db.pass_full_expiry(&paused);
    other.take_all();
    let found = TakenBatch { epoch: 2, ..first.clone() };
    other.store().evidence(&found, Evidence::Committed);
    let second = other.take_batch("a::b");
    for late in [
        paused.store().outcome(&first, Outcome::Accepted),
        paused.store().status(&first, LedgerStatus::Committed),
        // It cannot record outcomes of the next batch either.
        paused.store().outcome(&TakenBatch { epoch: 1, ..second.clone() }, Outcome::Rejected),
    ] {
        assert!(matches!(late, ChangeOutcome::Stale(_)), "{late:?}");
    }
    assert_eq!(db.state("a::b", 2), BatchState::Submitting);
    assert_eq!(other.store().depth(&service("a::b")).unwrap(), 2);
}

fn duplicate_service_ids_are_taken_once(db: &Database) {
    let owner = db.instance();
    owner.store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let twice = ["a::b", "a::b"].map(service);
    assert_eq!(sorted(owner.take_services(&twice).unwrap().claims), ["a::b"]);
    assert_eq!(owner.take_next(&twice).unwrap().len(), 1);
    assert!(owner.take_next(&twice).unwrap().is_empty());
    assert_eq!(db.epoch("a::b"), 1);
}

fn slow_submission_is_not_recovered_while_lease_is_renewed(db: &Database) {
    let [owner, other] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::b", 1)]);
    owner.take_all();
    let slow = owner.take_batch("a::b");
    db.later(7 * 24 * 60 * 60);
    assert!(owner.renew().unwrap());
    assert!(other.take_all().is_empty());
    assert!(other.with_submitter().unwrap().is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Submitting);
    owner.store().outcome(&slow, Outcome::Accepted);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
}

fn held_batch_does_not_block_other_services(db: &Database) {
    let [owner, other] = [db.instance(), db.instance()];
    owner.store().add_all(&[1, 2, 3].map(|n| batch(&format!("a::{n}"), n)));
    owner.take_all();
    let held = owner.take_batch("a::1");
    owner.store().outcome(&held, Outcome::Ambiguous);
    owner.store().hold(&held, "no evidence");
    owner.take_batch("a::2");
    db.pass_idle_expiry(&owner);
    // One batch is with a submitter; the other two services are taken one at a time.
    assert_eq!(other.take(1).unwrap().claims.len(), 1);
    assert_eq!(other.take(1).unwrap().claims.len(), 1);
    assert_eq!(db.claimed_by(&owner), 1);
    assert_eq!(other.ready_services(None, 9).unwrap(), [service("a::3")]);
}

/// An abandoned transaction keeps rows of one service locked.
#[test]
fn locked_service_does_not_block_takeover_of_others() {
    for rows in ["services", "service_id_claims"] {
        let db = Database::postgres();
        let [owner, other] = [db.instance(), db.instance()];
        owner.store().add_all(&[1, 2, 3].map(|n| batch(&format!("a::{n}"), n)));
        owner.take_all();
        db.pass_full_expiry(&owner);
        let mut forgotten = PgConnection::establish(&db.postgres_url()).unwrap();
        let lock = format!("begin; select * from {rows} where service_id = 'a::1' for update");
        forgotten.batch_execute(&lock).unwrap();
        assert_eq!(other.take(1).unwrap().claims.len(), 1);
        assert_eq!(other.take(1).unwrap().claims.len(), 1);
        assert!(other.take_all().is_empty());
        forgotten.batch_execute("rollback").unwrap();
        assert_eq!(other.take_all(), ["a::1"]);
    }
}

/// A takeover while the outcome is being written neither waits nor overwrites it.
#[test]
fn takeover_does_not_overwrite_a_concurrent_outcome() {
    let db = Database::postgres();
    let [owner, new_owner] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::b", 1)]);
    owner.take_all();
    let taken = owner.take_batch("a::b");
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before update on lanes for each row
             when (new.dlt_status = 'PENDING') execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    db.pass_full_expiry(&owner);
    thread::scope(|scope| {
        let recording = scope.spawn(|| owner.store().outcome(&taken, Outcome::Accepted));
        wait_until_blocked(&mut watcher, "write_lanes");
        assert!(new_owner.take_all().is_empty());
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        recording.join().unwrap();
    });
    assert!(new_owner.take(9).unwrap().in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    assert_eq!(db.claimed_by(&new_owner), 1);
}

/// An owner that renews during a takeover keeps everything, or loses only its idle services.
#[test]
fn renewal_waits_for_a_concurrent_takeover() {
    let db = Database::postgres();
    let [owner, other] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    owner.take_all();
    owner.take_batch("a::1");
    db.pass_idle_expiry(&owner);
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before update on service_id_claims for each row
             execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    thread::scope(|scope| {
        let takeover = scope.spawn(|| other.take_all());
        wait_until_blocked(&mut watcher, "change_claimant");
        let renewal = scope.spawn(|| owner.renew().unwrap());
        wait_until_blocked(&mut watcher, "renew");
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        assert_eq!(takeover.join().unwrap(), ["a::2"]);
        assert!(renewal.join().unwrap());
    });
    assert!(other.take_all().is_empty());
    assert_eq!((db.claimed_by(&owner), db.claimed_by(&other)), (1, 1));
}
