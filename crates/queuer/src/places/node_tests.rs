//! Places of nodes.

use std::collections::HashMap;

use grid_batch_core::ManualClock;

use super::*;

fn service(name: &str) -> ServiceId {
    format!("circuit::{name}").parse().unwrap()
}

/// Places for services whose names begin with the name of their node, and the services that were woken.
fn limits(places: usize, node_limit: usize) -> (Places, Arc<Mutex<Vec<ServiceId>>>) {
    let node_of = |service: &ServiceId| {
        let name = service.as_str().strip_prefix("circuit::")?;
        ["a", "b", "c"].into_iter().position(|node| name.starts_with(node))
    };
    let woken = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&woken);
    let wake = move |service| sink.lock().unwrap().push(service);
    let limits = PlaceLimits::of_nodes(places, node_limit, node_of);
    let clock = Arc::new(ManualClock::default());
    (Places::new(limits, WorkTable::default(), clock, wake), woken)
}

/// Whether the service gets a place.
fn admit(limits: &Places, name: &str) -> bool {
    limits.admit(&service(name), 1) == 1
}

/// How many of 20 services of a node get a place.
fn admitted(limits: &Places, node: &str) -> usize {
    (0..20).filter(|n| admit(limits, &format!("{node}{n}"))).count()
}

#[test]
fn each_node_leaves_places_for_others() {
    let (limits, _) = limits(12, 100);
    assert_eq!(admitted(&limits, "a"), 6);
    assert_eq!(admitted(&limits, "b"), 3);
    assert_eq!(admitted(&limits, "c"), 2);
}

#[test]
fn no_node_has_more_places_than_its_limit() {
    let (limits, _) = limits(100, 5);
    assert_eq!(admitted(&limits, "a"), 5);
    assert_eq!(admitted(&limits, "b"), 5);
}

#[test]
fn returned_place_wakes_the_next_service_of_its_node() {
    let (limits, woken) = limits(2, 100);
    assert!(admit(&limits, "a0"));
    assert!(!admit(&limits, "a1") && !admit(&limits, "a2"));
    assert!(!admit(&limits, "a1"));
    limits.submission_ended(&service("a9"));
    assert!(woken.lock().unwrap().is_empty());
    limits.submission_ended(&service("a0"));
    assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
    assert!(admit(&limits, "a1"));
}

#[test]
fn services_of_a_node_take_turns() {
    let (limits, woken) = limits(4, 100);
    let mut served = HashMap::<ServiceId, usize>::new();
    // Every service asks again at once, in the order of their names.
    for _ in 0..200 {
        let called: Vec<_> = woken.lock().unwrap().drain(..).collect();
        let all = (0..20).map(|n| service(&format!("a{n:02}")));
        let asks: Vec<ServiceId> = called.into_iter().chain(all).collect();
        let admitted: Vec<_> = asks.into_iter().filter(|id| limits.admit(id, 1) == 1).collect();
        for service in admitted {
            limits.submission_ended(&service);
            *served.entry(service).or_default() += 1;
        }
    }
    let (least, most) = (served.values().min().unwrap(), served.values().max().unwrap());
    assert!(served.len() == 20 && *most <= 2 * least, "{served:?}");
}

#[test]
fn woken_service_that_does_not_ask_blocks_no_other() {
    let (limits, woken) = limits(2, 100);
    assert!(admit(&limits, "a0"));
    assert!(!admit(&limits, "a1") && !admit(&limits, "a2"));
    limits.submission_ended(&service("a0"));
    assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
    assert!(!admit(&limits, "a3"), "another one waits");
    assert_eq!(woken.lock().unwrap()[1..], [service("a2")]);
    assert!(admit(&limits, "a2"));
}

#[test]
fn place_that_is_put_back_wakes_no_service() {
    let (limits, woken) = limits(10, 2);
    assert!(admit(&limits, "a0") && admit(&limits, "a1"));
    assert!(!admit(&limits, "a2") && !admit(&limits, "a3"));
    for _ in 0..3 {
        limits.put_back(&service("a1"), 1);
        assert!(admit(&limits, "a1"), "it keeps its turn");
    }
    assert!(woken.lock().unwrap().is_empty());
    limits.submission_ended(&service("a0"));
    limits.submission_ended(&service("a1"));
    assert_eq!(woken.lock().unwrap()[..], [service("a2"), service("a3")]);
}

#[test]
fn service_that_put_its_place_back_blocks_no_other() {
    let (limits, woken) = limits(2, 100);
    assert!(admit(&limits, "a0"));
    assert!(!admit(&limits, "a1"));
    limits.put_back(&service("a0"), 1);
    assert!(!admit(&limits, "a2"), "another one waits");
    assert_eq!(woken.lock().unwrap()[..], [service("a1")]);
    assert!(admit(&limits, "a1"));
}

#[test]
fn service_has_at_most_one_place() {
    let (limits, woken) = limits(10, 100);
    assert!(admit(&limits, "a0"));
    assert!(!admit(&limits, "a0"));
    limits.submission_ended(&service("a0"));
    assert_eq!(woken.lock().unwrap()[..], [service("a0")]);
    limits.submission_ended(&service("a0"));
    assert_eq!(admitted(&limits, "a"), 5);
}

#[test]
fn service_without_an_address_needs_no_place() {
    let (limits, _) = limits(1, 1);
    assert!(admit(&limits, "elsewhere") && admit(&limits, "nowhere"));
    assert!(admit(&limits, "a0"));
}

#[test]
fn only_place_is_for_any_node() {
    let (limits, woken) = limits(1, 100);
    assert!(admit(&limits, "a0"));
    assert!(!admit(&limits, "b0"));
    limits.submission_ended(&service("a0"));
    assert_eq!(woken.lock().unwrap()[..], [service("b0")]);
    assert!(admit(&limits, "b0"));
}
