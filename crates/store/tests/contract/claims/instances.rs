use std::{thread, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, ChangeOutcome, Stale};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, StoreError};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, on_both};

on_both! {
    each_registration_has_its_own_instance_id,
    expired_instance_can_renew,
    expiry_uses_the_database_clock_only,
    deleted_instance_must_register_again,
    expired_run_of_same_name_is_taken_over_at_once,
    options_that_allow_overtaking_are_refused,
    step_of_zero_counts_as_one,
}

fn named() -> ClaimOptions {
    ClaimOptions { name: Some("north".to_owned()), ..ClaimOptions::default() }
}

fn each_registration_has_its_own_instance_id(db: &Database) {
    let [one, other] = [db.instance(), db.instance()].map(|instance| instance.instance());
    assert_ne!(one, other);
    let named = db.instance_with(named());
    assert!(named.instance().as_str().starts_with("north-"), "{named:?}");
    assert_eq!(named.instance(), named.clone().instance());
}

fn expired_instance_can_renew(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    for pass in [Database::pass_idle_expiry, Database::pass_full_expiry] {
        pass(db, &instance);
        assert!(instance.take_all().is_empty());
        assert!(ClaimKeeper::renew(&instance).unwrap());
    }
    assert_eq!(instance.take_all(), ["a::b"]);
}

fn expiry_uses_the_database_clock_only(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1)]);
    assert_eq!(one.take_all(), ["a::b"]);
    db.clock.set(Timestamp::from_micros(i64::MAX / 2));
    assert!(other.take_all().is_empty());
    assert_eq!(one.take_batch("a::b").attempt, 1);
}

fn deleted_instance_must_register_again(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    assert_eq!(instance.take_all(), ["a::b"]);
    db.execute("delete from instances").unwrap();
    assert!(!instance.renew().unwrap());
    assert!(instance.take_all().is_empty());
    assert!(instance.takes_nothing_of("a::b"));

    let (before, clone) = (instance.instance(), instance.clone());
    instance.register_again().unwrap();
    assert_ne!(clone.instance(), before);
    assert!(clone.renew().unwrap());
    assert_eq!(clone.take_all(), ["a::b"]);
    assert_eq!(clone.take_batch("a::b").epoch, 2);
}

fn expired_run_of_same_name_is_taken_over_at_once(db: &Database) {
    let before = db.instance_with(named());
    before.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    before.take_all();
    let sent = before.take_batch("a::1");
    db.pass_idle_expiry(&before);

    let after = db.instance_with(named());
    assert!(!before.renew().unwrap(), "two instances must not run under one name");
    assert!(before.takes_nothing_of("a::2"));
    assert_eq!(after.take_all(), ["a::1", "a::2"]);
    assert_eq!(db.state("a::1", 1), BatchState::InDoubt);
    let late = before.store().outcome(&sent, Outcome::NotSent);
    assert_eq!(late, ChangeOutcome::Stale(Stale::Epoch { given: 1, present: 2 }));
}

#[test]
fn name_in_use_error_names_holder_and_expiry() {
    let db = Database::postgres();
    let holder = db.instance_with(named());
    let error = ClaimStore::register(db.open().into_store(), named()).unwrap_err();
    let StoreError::Claims(ClaimError::NameInUse { name, holder: id, until }) = &error else {
        panic!("{error}")
    };
    assert_eq!((name.as_str(), id), ("north", &holder.instance()));
    assert_eq!(until.as_micros(), db.number("select expiry_1 as number from instances"));
    assert!(error.to_string().contains(holder.instance().as_str()), "{error}");
    assert!(holder.renew().unwrap());

    holder.release().unwrap();
    ClaimStore::register(db.open().into_store(), named()).unwrap();
}

#[test]
fn one_of_concurrent_starts_with_same_name_registers() {
    let db = Database::postgres();
    drop(db.open());
    let started = thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| ClaimStore::register(db.open().into_store(), named())))
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(started.iter().filter(|started| started.is_ok()).count(), 1);
    assert_eq!(db.number("select count(*) as number from instances"), 1);
}

fn options_that_allow_overtaking_are_refused(db: &Database) {
    let store = db.open();
    let longest_submission = Duration::from_secs(151);
    let options = ClaimOptions { longest_submission, ..ClaimOptions::default() };
    let error = ClaimStore::register(store.into_store(), options).unwrap_err();
    assert!(matches!(error, StoreError::Claims(ClaimError::SubmissionTooLong { .. })), "{error}");
    assert_eq!(db.number("select count(*) as number from instances"), 0);
}

fn step_of_zero_counts_as_one(db: &Database) {
    let instance = db.instance_with(ClaimOptions { step: 0, ..ClaimOptions::default() });
    instance.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    assert_eq!(instance.take_all(), ["a::1", "a::2"]);
    assert_eq!(instance.release().unwrap(), 2);
}
