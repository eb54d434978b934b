use grid_batch_core::ServiceId;
use grid_batch_core::batches::{Change, Event};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{BatchQueryStore, ServiceOverview};
use grid_batch_core::queue::StrategyKind;

use crate::fixture::{Database, StoreExt, TestStore, batch, happened, id, on_both, service};

on_both! {
    services_are_listed_in_pages,
    service_shows_what_its_batches_do,
    service_behind_a_closed_gate_is_parked_and_does_not_fail,
    owner_is_shown_with_its_lease_and_epoch,
    claims_are_listed_by_service_and_by_instance,
}

fn one(store: &TestStore, name: &str) -> ServiceOverview {
    BatchQueryStore::service(&**store, &service(name)).unwrap().unwrap()
}

fn names(services: &[ServiceOverview]) -> Vec<&str> {
    services.iter().map(|service| service.service_id.as_str()).collect()
}

fn services_are_listed_in_pages(db: &Database) {
    let store = db.open();
    for (number, name) in [(1, "c"), (2, "a"), (3, "d"), (4, "b")] {
        store.add_all(&[batch(name, number)]);
    }
    store.commit_next("b");
    let page = |with_idle, after: Option<&str>, limit| {
        let after: Option<ServiceId> = after.map(service);
        store.services(with_idle, after.as_ref(), limit).unwrap()
    };
    assert_eq!(names(&page(false, None, 9)), ["a", "c", "d"]);
    assert_eq!(names(&page(false, None, 2)), ["a", "c"]);
    assert_eq!(names(&page(false, Some("c"), 2)), ["d"]);
    assert_eq!(names(&page(true, None, 9)), ["a", "b", "c", "d"]);
    assert_eq!(names(&page(true, Some("a"), 2)), ["b", "c"]);
    assert_eq!(page(false, Some("d"), 9), []);
    assert_eq!(BatchQueryStore::service(&*store, &service("e")).unwrap(), None);
}

fn service_shows_what_its_batches_do(db: &Database) {
    let store = db.open();
    store.add_all(&[1, 2, 3].map(|number| batch("a", number)));
    store.add_all(&[batch("b", 4)]);
    let stored_at = store.one("a", 2).created_at;
    store.commit_next("a");
    store.take_one("a");
    store.hold_batch(&service("a"), &id(3), "look first").unwrap();
    let taken = store.take_one("b");
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Refused };
    let error = Some("401: no such key".to_owned());
    store.record_one(Change { error: error.clone(), ..happened(&taken, busy) });

    let a = one(&store, "a");
    assert_eq!((a.open, a.under_way, a.in_doubt, a.held), (2, 1, 0, 1));
    assert_eq!((a.oldest_at, a.failing, a.halts), (Some(stored_at), None, 0));
    assert_eq!(a.scheduling.strategy, StrategyKind::Serial);
    let b = one(&store, "b");
    assert_eq!((b.open, b.under_way, b.failing), (1, 0, error));
}

fn service_behind_a_closed_gate_is_parked_and_does_not_fail(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a", 1)]);
    let parked = |attempt| Event::Outcome { attempt, outcome: Outcome::Parked };
    let error = Some("the gas price is 300 gwei".to_owned());
    let taken = store.take_one("a");
    store.record_one(Change { error: error.clone(), ..happened(&taken, parked(1)) });
    let a = one(&store, "a");
    assert_eq!((a.parked, a.failing, a.held), (error, None, 0));
    store.hold_batch(&service("a"), &id(1), "look first").unwrap();
    assert_eq!(one(&store, "a").parked, None, "the hold says why");
}

fn owner_is_shown_with_its_lease_and_epoch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a", 1)]);
    assert_eq!(one(&store, "a").owner, None);
    store.take_one("a");
    let owner = one(&store, "a").owner.unwrap();
    assert_eq!(owner.instance.instance_id, store.worker().instance());
    assert!(owner.epoch > 0);
    assert!(owner.instance.lease_ends_at < owner.instance.full_lease_ends_at);
    assert_eq!(store.instances().unwrap(), [owner.instance]);
}

fn claims_are_listed_by_service_and_by_instance(db: &Database) {
    let store = db.open();
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        store.add_all(&[batch(name, number)]);
    }
    store.take(&["a", "c"]);
    let own = store.worker().instance();
    let page = |instance: Option<&InstanceId>, after: Option<&str>, limit| -> Vec<String> {
        let after: Option<ServiceId> = after.map(service);
        let claims = store.claims(instance, after.as_ref(), limit).unwrap();
        claims.iter().map(|claim| claim.service_id.to_string()).collect()
    };
    assert_eq!(page(Some(&own), None, 9), ["a", "c"]);
    assert_eq!(page(Some(&own), Some("a"), 9), ["c"]);
    assert_eq!(page(Some(&own), None, 1), ["a"]);
    assert_eq!(page(Some(&InstanceId::new("other")), None, 9), Vec::<String>::new());
    assert!(page(None, None, 9).starts_with(&["a".to_owned()]));
    assert_eq!(page(None, Some("b"), 9), ["c"]);
    let claimed = store.claims(Some(&own), None, 1).unwrap();
    assert_eq!((claimed[0].instance_id.as_ref(), claimed[0].epoch > 0), (Some(&own), true));
}
