use std::collections::{BTreeMap, BTreeSet};

use grid_batch_core::events::{EventFilter, EventPosition, EventStore};
use grid_batch_store::Store;
use grid_batch_test_support::{
    http::{request, send},
    webhook_receiver::{ReceivedMessage, WebhookReceiver},
};
use serde_json::{Value, json};

use super::group::InstanceGroup;

const SERVICES: usize = 4;
/// After a kill, another instance delivers after three times as long.
const FLAGS: &[(&str, &str)] = &[
    ("--requests-options", "webhooks=private:127.0.0.1"),
    ("--testing-webhooks-timeout", "1500ms"),
];

/// The id of the event in a message, and its service.
fn event_of(message: &ReceivedMessage) -> (String, String) {
    let body: Value = serde_json::from_str(&message.body).unwrap();
    let text = |name: &str| body["data"][name].as_str().unwrap().to_owned();
    (text("id"), text("service_id"))
}

/// The ids of all events by service, in order.
fn events_by_service(
    events: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, Vec<String>> {
    let mut services: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, service) in events {
        services.entry(service).or_default().push(id);
    }
    services
}

fn stored_events(store: &Store) -> BTreeMap<String, Vec<String>> {
    let page = store.events(&EventPosition::Oldest, &EventFilter::default(), 9_999).unwrap();
    let page = page.unwrap();
    assert!(!page.more);
    let events = page.events.into_iter().map(|it| it.event);
    events_by_service(events.map(|event| (event.id.to_string(), event.service_id.to_string())))
}

#[test]
fn webhook_gets_every_event_though_an_instance_is_killed() {
    let group = InstanceGroup::new(SERVICES);
    // The instance that delivers is killed while it waits for the third answer.
    let receiver = WebhookReceiver::start(&["204 Fine", "204 Fine", "hang"]);
    let first = group.start_with("first", FLAGS);
    let body = json!({ "url": receiver.url(), "reason": "a test" }).to_string();
    let headers = ["content-type: application/json"];
    let post = request("POST", "/v1/webhooks", &headers, body.as_bytes());
    assert_eq!(send(first.address, &post).unwrap().status, 201);
    first.submit(&group.batches(0));
    let mut received: Vec<ReceivedMessage> = (0..3).map(|_| receiver.next()).collect();
    let second = group.start_with("second", FLAGS);
    group.harness.wait_until_all_committed(&group.batches(0));
    first.process.kill();
    second.submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());

    let expected = stored_events(&group.harness.store());
    let count = expected.values().map(Vec::len).sum();
    let mut distinct: BTreeSet<String> = received.iter().map(|it| it.id.clone()).collect();
    while distinct.len() < count {
        let message = receiver.next();
        distinct.insert(message.id.clone());
        received.push(message);
    }
    second.stop();

    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    let mut in_order = Vec::new();
    for message in &received {
        match bodies.insert(message.id.clone(), message.body.clone()) {
            Some(earlier) => assert_eq!(earlier, message.body, "a repeat is the same event"),
            None => in_order.push(event_of(message)),
        }
    }
    assert!(received.len() > count, "the one without an answer is repeated");
    assert_eq!(events_by_service(in_order.into_iter()), expected);
}
