use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_store::ClaimOptions;

use super::fixture::{ClaimExt, sorted};
use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    unclaimed_services_are_taken_and_epoch_is_raised,
    services_with_valid_lease_are_not_taken_over,
    past_idle_expiry_only_idle_services_are_taken_over,
    past_full_expiry_batches_being_sent_are_in_doubt,
    equal_expiries_take_over_all_services_at_once,
    takeover_keeps_the_state_of_submitted_batches,
    takeover_ends_a_batch_proved_committed_while_sent,
    deleting_an_instance_frees_its_claims,
    take_respects_its_limit,
    take_works_in_steps,
    expired_instance_takes_no_services,
    named_services_are_taken_if_unclaimed_or_expired,
    expired_instance_row_is_deleted_after_takeover,
    idle_services_are_taken_too,
    recovery_ignores_services_of_other_instances,
}

fn unclaimed_services_are_taken_and_epoch_is_raised(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    let takeover = instance.take(9).unwrap();
    assert!(takeover.claims.iter().all(|claim| claim.epoch == 1));
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!((db.epoch("a::1"), db.epoch("a::2")), (1, 1));
    assert!(instance.take_all().is_empty(), "own services are not taken again");

    instance.store().add_all(&[batch("a::1", 3), batch("a::3", 4)]);
    assert_eq!(instance.take_all(), ["a::3"]);
    assert_eq!(db.epoch("a::1"), 1);
}

fn services_with_valid_lease_are_not_taken_over(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.take_batch("a::1");
    assert!(other.take_all().is_empty());
    assert!(other.take_services(&[service("a::1"), service("a::2")]).unwrap().claims.is_empty());
    assert_eq!(db.claimed_by(&one), 2);
    assert_eq!(db.epoch("a::1"), 1);
}

fn past_idle_expiry_only_idle_services_are_taken_over(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    let sent = one.take_batch("a::1");
    one.store().outcome(&one.take_batch("a::2"), Outcome::Accepted);
    db.pass_idle_expiry(&one);

    assert_eq!(other.take_all(), ["a::2", "a::3"]);
    assert!(other.take_services(&[service("a::1")]).unwrap().claims.is_empty());
    // The former owner can still record the outcome of what it was sending.
    one.store().outcome(&sent, Outcome::Accepted);
    assert_eq!(db.state("a::1", 1), BatchState::Pending);
    assert_eq!(other.take_all(), ["a::1"]);
}

fn past_full_expiry_batches_being_sent_are_in_doubt(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::1", 2), batch("a::2", 3)]);
    one.take_all();
    one.take_batch("a::1");
    db.pass_full_expiry(&one);

    let takeover = other.take(9).unwrap();
    assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!(db.state("a::1", 1), BatchState::InDoubt);
    assert!(other.takes_nothing_of("a::1"), "evidence is needed first");
    let details = other.store().details(&service("a::1"), &id(1)).unwrap().unwrap();
    assert_eq!(details.failed_attempts[0].outcome, "owner lost");
}

fn equal_expiries_take_over_all_services_at_once(db: &Database) {
    let lease = std::time::Duration::from_secs(300);
    let options =
        ClaimOptions { idle_expiry: lease, full_expiry: lease, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.take_batch("a::1");
    db.expire_in(&one, 1, 1);
    assert!(other.take_all().is_empty());
    db.expire_in(&one, -1, -1);
    assert_eq!(other.take_all(), ["a::1", "a::2"]);
}

fn takeover_keeps_the_state_of_submitted_batches(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    let [pending, absent, delayed] = ["a::1", "a::2", "a::3"].map(|name| one.take_batch(name));
    one.store().outcome(&pending, Outcome::Accepted);
    one.store().outcome(&absent, Outcome::Ambiguous);
    one.store().evidence(&absent, Evidence::Absent);
    one.store().outcome(&delayed, Outcome::Busy);
    db.pass_full_expiry(&one);
    assert!(other.take(9).unwrap().in_doubt.is_empty());
    let states = [1, 2, 3].map(|number| db.state(&format!("a::{number}"), number));
    assert_eq!(states, [BatchState::Pending, BatchState::Absent, BatchState::Delayed]);
    assert_eq!(other.take_batch("a::2").attempt, 2);
}

fn takeover_ends_a_batch_proved_committed_while_sent(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    one.take_all();
    let sent = one.take_batch("a::b");
    one.store().status(&sent, LedgerStatus::Committed);
    assert_eq!(db.state("a::b", 1), BatchState::Submitting);
    db.pass_full_expiry(&one);
    let takeover = other.take(9).unwrap();
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Committed);
    assert_eq!(other.take_batch("a::b").batch_id, id(2));
}

fn deleting_an_instance_frees_its_claims(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    one.take_batch("a::1");
    db.execute(&format!("delete from instances where instance_id = '{}'", one.instance())).unwrap();
    let takeover = other.take(9).unwrap();
    assert_eq!(takeover.in_doubt, [(service("a::1"), id(1))]);
    assert_eq!(sorted(takeover.claims), ["a::1", "a::2"]);
    assert_eq!(db.epoch("a::2"), 2);
}

fn take_respects_its_limit(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    let all: Vec<_> = (0..10).map(|number| batch(&format!("a::{number}"), number)).collect();
    one.store().add_all(&all);
    assert_eq!(one.take(3).unwrap().claims.len(), 3);
    assert!(one.take(0).unwrap().claims.is_empty());
    db.pass_full_expiry(&one);
    // First unclaimed services, then those of an expired instance.
    assert_eq!(other.take(8).unwrap().claims.len(), 8);
    assert_eq!(other.take(8).unwrap().claims.len(), 2);
    assert_eq!((db.claimed_by(&one), db.claimed_by(&other)), (0, 10));
}

fn take_works_in_steps(db: &Database) {
    let options = ClaimOptions { step: 3, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    let all: Vec<_> = (0..10).map(|number| batch(&format!("a::{number}"), number)).collect();
    one.store().add_all(&all);
    assert_eq!(one.take_all().len(), 10);
    db.pass_full_expiry(&one);
    let names: Vec<_> = all.into_iter().map(|batch| batch.service_id).collect();
    assert_eq!(other.take_services(&names[..4]).unwrap().claims.len(), 4);
    assert_eq!(other.take_all().len(), 6);
}

fn expired_instance_takes_no_services(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    db.pass_idle_expiry(&instance);
    assert!(instance.take_all().is_empty());
    assert!(instance.take_services(&[service("a::b")]).unwrap().claims.is_empty());
}

fn named_services_are_taken_if_unclaimed_or_expired(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    db.pass_idle_expiry(&one);
    other.store().add_all(&[batch("a::3", 3), batch("a::4", 4)]);
    let named = ["a::1", "a::3", "a::3", "never::seen"].map(service);
    let takeover = other.take_services(&named).unwrap();
    assert_eq!(sorted(takeover.claims), ["a::1", "a::3"]);
    assert_eq!(other.take_batch("a::3").epoch, 1);
    assert_eq!(other.take_batch("a::1").epoch, 2);
    assert!(other.take_services(&[]).unwrap().claims.is_empty());
}

fn expired_instance_row_is_deleted_after_takeover(db: &Database) {
    let options = ClaimOptions { step: 2, ..ClaimOptions::default() };
    let [one, other] = [db.instance_with(options.clone()), db.instance_with(options)];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2), batch("a::3", 3)]);
    one.take_all();
    db.pass_full_expiry(&one);
    let rows = "select count(*) as number from instances";
    other.take(2).unwrap();
    assert_eq!(db.number(rows), 2);
    other.take(9).unwrap();
    assert_eq!(db.number(rows), 1);
    assert!(!one.renew().unwrap());
}

fn idle_services_are_taken_too(db: &Database) {
    db.open().add_all(&[batch("a::b", 1)]);
    db.open().commit_next("a::b");
    db.pass_full_expiry(db.open().worker());
    let instance = db.instance();
    assert_eq!(instance.take_all(), ["a::b"]);
}

fn recovery_ignores_services_of_other_instances(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_services(&[service("a::1")]).unwrap();
    other.take_services(&[service("a::2")]).unwrap();
    let [_, own] = [one.take_batch("a::1"), other.take_batch("a::2")];

    let states = || [1, 2].map(|number| db.state(&format!("a::{number}"), number));
    use BatchState::{InDoubt, Submitting};
    assert_eq!(states(), [Submitting, Submitting]);
    assert_eq!(one.recover(&one.with_submitter().unwrap()).unwrap().len(), 1);
    assert_eq!(states(), [InDoubt, Submitting]);
    other.store().outcome(&own, Outcome::Accepted);
    assert_eq!(states(), [InDoubt, BatchState::Pending]);
}
