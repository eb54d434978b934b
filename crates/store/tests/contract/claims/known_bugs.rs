//! What others who run work from a database have learned the hard way.

use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::{BatchState, ChangeOutcome, Evidence, LedgerStatus, Outcome, TakenBatch};

use super::fixture::{ClaimExt, sorted};
use crate::fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked};

on_both! {
    a_rescuer_leaves_alone_what_ended_in_time,
    a_paused_owner_that_wakes_releases_nothing_of_anothers,
    a_paused_owner_that_wakes_finishes_nothing_a_second_time,
    no_service_is_given_twice_in_one_round,
    a_submission_that_is_slow_is_not_sent_again_because_time_has_passed,
    a_batch_that_waits_for_ever_keeps_no_other_service_waiting,
}

fn a_rescuer_leaves_alone_what_ended_in_time(db: &Database) {
    let [owner, rescuer] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    owner.take_all();
    let [first, _] = ["a::1", "a::2"].map(|name| owner.mark(name));
    db.let_die(&owner);
    owner.store().outcome(&first, Outcome::Accepted);
    owner.store().status(&first, LedgerStatus::Committed);
    assert_eq!(rescuer.take(9).unwrap().in_doubt, [(service("a::2"), id(2))]);
    assert_eq!(db.state("a::1", 1), BatchState::Committed);
}

fn a_paused_owner_that_wakes_releases_nothing_of_anothers(db: &Database) {
    let [paused, other] = [db.instance(), db.instance()];
    paused.store().add_all(&[batch("a::b", 1)]);
    paused.take_all();
    db.let_lapse(&paused);
    other.take_all();
    assert_eq!(paused.release_services(&[service("a::b")]).unwrap(), 0);
    assert_eq!(paused.release().unwrap(), 0);
    assert_eq!(db.claimed_by(&other), 1);
    assert_eq!(other.mark("a::b").epoch, 2);
}

fn a_paused_owner_that_wakes_finishes_nothing_a_second_time(db: &Database) {
    let [paused, other] = [db.instance(), db.instance()];
    paused.store().add_all(&[batch("a::b", 1), batch("a::b", 2), batch("a::b", 3)]);
    paused.take_all();
    let first = paused.mark("a::b");
    db.let_die(&paused);
    other.take_all();
    let found = TakenBatch { epoch: 2, ..first.clone() };
    other.store().evidence(&found, Evidence::Committed);
    let second = other.mark("a::b");
    for late in [
        paused.store().outcome(&first, Outcome::Accepted),
        paused.store().status(&first, LedgerStatus::Committed),
        // Not even with the batch that is next.
        paused.store().outcome(&TakenBatch { epoch: 1, ..second.clone() }, Outcome::Rejected),
    ] {
        assert!(matches!(late, ChangeOutcome::Stale(_)), "{late:?}");
    }
    assert_eq!(db.state("a::b", 2), BatchState::Submitting);
    assert_eq!(other.store().depth(&service("a::b")).unwrap(), 2);
}

fn no_service_is_given_twice_in_one_round(db: &Database) {
    let owner = db.instance();
    owner.store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let twice = ["a::b", "a::b"].map(service);
    assert_eq!(sorted(owner.take_services(&twice).unwrap().claims), ["a::b"]);
    assert_eq!(owner.take_round(&twice).unwrap().len(), 1);
    assert!(owner.take_round(&twice).unwrap().is_empty());
    assert_eq!(db.epoch("a::b"), 1);
}

fn a_submission_that_is_slow_is_not_sent_again_because_time_has_passed(db: &Database) {
    let [owner, other] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::b", 1)]);
    owner.take_all();
    let slow = owner.mark("a::b");
    db.later(7 * 24 * 60 * 60);
    assert!(owner.renew().unwrap());
    assert!(other.take_all().is_empty());
    assert_eq!(other.recover(db.now()).unwrap(), 0);
    assert_eq!(db.state("a::b", 1), BatchState::Submitting);
    owner.store().outcome(&slow, Outcome::Accepted);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
}

fn a_batch_that_waits_for_ever_keeps_no_other_service_waiting(db: &Database) {
    let [owner, other] = [db.instance(), db.instance()];
    owner.store().add_all(&[1, 2, 3].map(|n| batch(&format!("a::{n}"), n)));
    owner.take_all();
    let held = owner.mark("a::1");
    owner.store().outcome(&held, Outcome::Ambiguous);
    owner.store().hold(&held, "nobody knows");
    owner.mark("a::2");
    db.let_lapse(&owner);
    // One is with a submitter, and the other two are taken all the same, one at a time.
    assert_eq!(other.take(1).unwrap().claims.len(), 1);
    assert_eq!(other.take(1).unwrap().claims.len(), 1);
    assert_eq!(db.claimed_by(&owner), 1);
    assert_eq!(other.ready_services(None, 9).unwrap(), [service("a::3")]);
}

/// A transaction that somebody has forgotten keeps rows of one service locked.
#[test]
fn a_service_that_somebody_keeps_locked_starves_no_other() {
    for rows in ["services", "service_id_claims"] {
        let db = Database::postgres();
        let [owner, other] = [db.instance(), db.instance()];
        owner.store().add_all(&[1, 2, 3].map(|n| batch(&format!("a::{n}"), n)));
        owner.take_all();
        db.let_die(&owner);
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

/// The rescuer comes while the outcome is being written: it neither waits nor overwrites.
#[test]
fn a_rescuer_does_not_overwrite_what_is_being_recorded() {
    let db = Database::postgres();
    let [owner, rescuer] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::b", 1)]);
    owner.take_all();
    let taken = owner.mark("a::b");
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before update on lanes for each row
             when (new.dlt_status = 'PENDING') execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    db.let_die(&owner);
    thread::scope(|scope| {
        let recording = scope.spawn(|| owner.store().outcome(&taken, Outcome::Accepted));
        wait_until_blocked(&mut watcher, "write_lanes");
        assert!(rescuer.take_all().is_empty());
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        recording.join().unwrap();
    });
    assert!(rescuer.take(9).unwrap().in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    assert_eq!(db.claimed_by(&rescuer), 1);
}

/// An owner that renews while it is being robbed either keeps all, or loses what it is not sending.
#[test]
fn a_renewal_that_comes_while_it_is_being_robbed_waits() {
    let db = Database::postgres();
    let [owner, robber] = [db.instance(), db.instance()];
    owner.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    owner.take_all();
    owner.mark("a::1");
    db.let_lapse(&owner);
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
        let robbing = scope.spawn(|| robber.take_all());
        wait_until_blocked(&mut watcher, "change_claimant");
        let renewal = scope.spawn(|| owner.renew().unwrap());
        wait_until_blocked(&mut watcher, "renew");
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        assert_eq!(robbing.join().unwrap(), ["a::2"]);
        assert!(renewal.join().unwrap());
    });
    assert!(robber.take_all().is_empty());
    assert_eq!((db.claimed_by(&owner), db.claimed_by(&robber)), (1, 1));
}
