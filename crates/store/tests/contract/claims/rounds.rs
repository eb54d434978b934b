use std::{thread, time::Duration};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::BatchState;
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, ServiceShare};
use grid_batch_store::ClaimOptions;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both, service, wait_until_blocked};

on_both! {
    only_claimed_services_are_ready_and_taken,
    attempt_id_has_the_epoch_of_the_claim,
    instance_past_idle_expiry_takes_no_batch,
    equal_expiries_leave_time_for_longest_submission,
    give_back_with_older_epoch_changes_nothing,
}

fn only_claimed_services_are_ready_and_taken(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    let names = ["a::1", "a::2", "a::3", "a::4"].map(service);
    one.store().add_all(&[1, 2, 3, 4].map(|n| batch(&format!("a::{n}"), n)));
    one.take_services(&names[..3]).unwrap();
    other.take_services(&names[3..]).unwrap();

    assert_eq!(one.ready_services(None, 9).unwrap(), names[..3]);
    assert_eq!(one.ready_services(Some(&names[0]), 1).unwrap(), names[1..2]);
    let shares = names.clone().map(ServiceShare::of_one);
    let mut taken = RoundStore::take_round(&one, &shares, &mut |_| true).unwrap().batches;
    taken.sort_by_key(|batch| batch.batch_id);
    assert_eq!(taken.iter().map(|batch| batch.batch_id).collect::<Vec<_>>(), [1, 2, 3].map(id));
    assert_eq!(taken[0].serialized_batch, b"the bytes of 1");
    assert!(one.ready_services(None, 9).unwrap().is_empty());
    assert_eq!(RoundStore::ready_services(&other, None, 9).unwrap(), names[3..]);
}

fn attempt_id_has_the_epoch_of_the_claim(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1)]);
    for (epoch, [owner, next]) in (1..).zip([[&one, &other], [&other, &one]]) {
        owner.take_all();
        let taken = owner.take_batch("a::b");
        assert_eq!((taken.epoch, u64::from(taken.attempt)), (epoch, epoch));
        RoundStore::give_back(owner, &[taken]).unwrap();
        owner.release_services(&[service("a::b")]).unwrap();
        assert!(owner.takes_nothing_of("a::b"));
        assert!(next.takes_nothing_of("a::b"));
    }
}

fn instance_past_idle_expiry_takes_no_batch(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take_all();
    db.pass_idle_expiry(&instance);
    assert!(instance.takes_nothing_of("a::b"));
    assert!(instance.renew().unwrap());
    assert_eq!(instance.take_batch("a::b").attempt, 1);
}

fn equal_expiries_leave_time_for_longest_submission(db: &Database) {
    let lease = Duration::from_secs(100);
    let instance = db.instance_with(ClaimOptions {
        idle_expiry: lease,
        full_expiry: lease,
        longest_submission: Duration::from_secs(60),
        ..ClaimOptions::default()
    });
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take_all();
    db.expire_in(&instance, 59, 59);
    assert!(instance.takes_nothing_of("a::b"));
    db.expire_in(&instance, 99, 99);
    assert_eq!(instance.take_batch("a::b").attempt, 1);
}

fn give_back_with_older_epoch_changes_nothing(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1)]);
    one.take_all();
    let taken = one.take_batch("a::b");
    db.pass_full_expiry(&one);
    other.take_all();
    RoundStore::give_back(&one, &[taken]).unwrap();
    assert_eq!(db.state("a::b", 1), BatchState::InDoubt);
}

/// A trigger blocks the transaction that takes the batch while both expiries pass.
#[test]
fn service_is_not_taken_over_while_its_batch_is_taken() {
    let db = Database::postgres();
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    db.execute(
        "create function hold_up() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock(hashtext(current_schema)); return new; end';
         create trigger hold_up before update on lanes for each row
             when (new.service_id = 'a::1' and new.submitted) execute function hold_up();",
    )
    .unwrap();
    let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
    watcher.batch_execute("select pg_advisory_lock(hashtext(current_schema))").unwrap();
    thread::scope(|scope| {
        let taking = scope.spawn(|| one.take_batch("a::1"));
        wait_until_blocked(&mut watcher, "take_round");
        db.pass_full_expiry(&one);
        assert_eq!(other.take_all(), ["a::2"]);
        watcher.batch_execute("select pg_advisory_unlock(hashtext(current_schema))").unwrap();
        let taken = taking.join().unwrap();
        // The batch was taken before the takeover, so it is in doubt.
        let takeover = other.take(9).unwrap();
        assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
        one.store().outcome(&taken, Outcome::NotSent);
    });
    assert_eq!(db.state("a::1", 1), BatchState::InDoubt);
}
