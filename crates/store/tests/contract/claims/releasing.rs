use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Outcome;
use grid_batch_store::ClaimOptions;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, on_both, service};

on_both! {
    released_services_are_taken_by_a_standby_at_once,
    service_with_batch_being_sent_is_not_released,
    only_named_services_are_released,
    released_service_can_be_claimed_again,
}

fn released_services_are_taken_by_a_standby_at_once(db: &Database) {
    let options = ClaimOptions { step: 2, ..ClaimOptions::default() };
    let [one, standby] = [db.instance_with(options.clone()), db.instance_with(options)];
    let all: Vec<_> = (0..5).map(|number| batch(&format!("a::{number}"), number)).collect();
    one.store().add_all(&all);
    one.take_all();
    one.store().outcome(&one.take_batch("a::1"), Outcome::Accepted);
    assert!(standby.take_all().is_empty());

    assert_eq!(ClaimKeeper::release(&one).unwrap(), 5);
    assert_eq!(db.number("select count(*) as number from instances"), 1);
    assert_eq!(standby.take_all().len(), 5);
    assert_eq!(db.epoch("a::0"), 2);
    // A released instance can do nothing more.
    assert!(!one.renew().unwrap());
    assert!(one.take_all().is_empty());
    assert_eq!(one.release().unwrap(), 0);
}

fn service_with_batch_being_sent_is_not_released(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[batch("a::1", 1), batch("a::2", 2)]);
    one.take_all();
    let sent = one.take_batch("a::1");
    assert_eq!(one.release().unwrap(), 1);
    assert_eq!(other.take_all(), ["a::2"]);
    // The owner can still record the outcome; afterwards the service can be taken over.
    one.store().outcome(&sent, Outcome::Accepted);
    assert_eq!(db.state("a::1", 1), BatchState::Pending);
    db.pass_idle_expiry(&one);
    assert_eq!(other.take_all(), ["a::1"]);
}

fn only_named_services_are_released(db: &Database) {
    let [one, other] = [db.instance(), db.instance()];
    one.store().add_all(&[1, 2, 3].map(|n| batch(&format!("a::{n}"), n)));
    one.take_services(&["a::1", "a::2"].map(service)).unwrap();
    other.take_services(&[service("a::3")]).unwrap();
    one.take_batch("a::1");
    let named = ["a::1", "a::2", "a::2", "a::3", "never::seen"].map(service);
    assert_eq!(one.release_services(&named).unwrap(), 1);
    assert_eq!((db.claimed_by(&one), db.claimed_by(&other)), (1, 1));
    assert_eq!(one.release_services(&[]).unwrap(), 0);
    assert!(one.renew().unwrap());
}

fn released_service_can_be_claimed_again(db: &Database) {
    let instance = db.instance();
    instance.store().add_all(&[batch("a::b", 1)]);
    instance.take_all();
    let taken = instance.take_batch("a::b");
    instance.store().outcome(&taken, Outcome::Accepted);
    instance.release_services(&[service("a::b")]).unwrap();
    // No instance has taken over the service, so its former owner's report still counts.
    instance.store().status(&taken, LedgerStatus::Valid);
    assert_eq!(db.state("a::b", 1), BatchState::Valid);
    assert_eq!(instance.take_all(), ["a::b"]);
    instance.store().status(&taken, LedgerStatus::Invalid);
    assert_eq!(db.state("a::b", 1), BatchState::Valid);
}
