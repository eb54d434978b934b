//! Webhooks are stored, one instance at a time delivers to each, and failed messages are kept.

use std::{collections::BTreeSet, thread, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_core::events::{EventCursor, EventFilter, EventKind, EventPosition, EventStore};
use grid_batch_core::webhooks::{
    Backlog, DeliveryResult, DueWebhook, FailedDelivery, FailedDeliveryId, Message, NewWebhook,
    TRACE_EXPORT, Webhook, WebhookChange, WebhookId, WebhookLease, WebhookSecret, WebhookStore,
    trace_export_filter,
};
use grid_batch_store::Store;

use crate::fixture::{Database, StoreExt, batch, by_program, on_both, service};

on_both! {
    webhook_is_stored_and_removed,
    webhook_begins_with_later_events,
    events_that_wait_are_counted,
    changed_webhook_has_other_fields_and_ends_its_delivery,
    secret_before_is_used_until_its_end,
    paused_webhook_waits_until_it_is_resumed,
    ping_is_a_message_to_send,
    export_of_traces_is_only_paused,
    webhooks_are_limited_in_number,
    export_of_traces_is_stored_once,
    one_instance_at_a_time_has_a_webhook,
    result_of_an_earlier_lease_changes_nothing,
    ended_lease_is_followed_by_another,
    webhook_that_was_delayed_waits,
    webhook_that_is_gone_is_disabled,
    removed_events_are_told,
    message_that_was_given_up_is_kept_and_sent_again,
    failed_messages_are_listed_in_pages,
    failed_messages_of_another_webhook_stay,
}

fn export_of_traces_is_stored_once(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| db.open().add_trace_export().unwrap());
        }
    });
    let export = due(&store).unwrap();
    assert!(export.is_trace_export());
    assert_eq!(export.filter, trace_export_filter());
    let position = EventPosition::After(export.cursor);
    let page = store.events(&position, &EventFilter::default(), 9).unwrap().unwrap();
    assert!(page.events.is_empty(), "it begins with later events: {page:?}");
    let stored = store.webhooks().unwrap().remove(0);
    assert_eq!((stored.url.as_str(), stored.created_at), (TRACE_EXPORT, db.now()));
    assert!(store.remove_webhook(stored.id, &by_program()).unwrap());
    store.add_trace_export().unwrap();
    assert!(due(&store).unwrap().id > stored.id);
}

const LEASE: Duration = Duration::from_secs(30);

fn new(filter: EventFilter) -> NewWebhook {
    let secret = WebhookSecret::new(vec![1, 0, 255]);
    NewWebhook { url: "https://example.com/events?a=1".to_owned(), secret, filter }
}

fn create(store: &Store) -> Webhook {
    store.create_webhook(&new(EventFilter::default()), &by_program()).unwrap().unwrap()
}

fn events_that_wait_are_counted(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let all = create(&store).id;
    let waits = |id, count, more| {
        assert_eq!(store.backlog(id).unwrap(), Some(Backlog { count, more }));
    };
    waits(all, 0, false);
    store.add_all(&[batch("a::b", 2), batch("a::c", 1)]);
    let of = |service_id| {
        let services = BTreeSet::from([service(service_id)]);
        new(EventFilter { services, ..EventFilter::default() })
    };
    let of_b = store.create_webhook(&of("a::b"), &by_program()).unwrap().unwrap().id;
    waits(all, 2, false);
    waits(of_b, 0, false);
    let many: Vec<_> = (3..1_200).map(|number| batch("a::b", number)).collect();
    store.add_all(&many);
    waits(of_b, 1_000, true);
    assert!(store.remove_webhook(all, &by_program()).unwrap());
    assert_eq!(store.backlog(all).unwrap(), None);
}

fn due(store: &Store) -> Option<DueWebhook> {
    let mut due = store.due_webhooks().unwrap();
    assert!(due.len() <= 1);
    due.pop()
}

fn take(store: &Store) -> WebhookLease {
    store.take_webhook(&due(store).unwrap(), LEASE).unwrap().unwrap()
}

fn cursor(text: &str) -> EventCursor {
    text.parse().unwrap()
}

fn delivered(text: &str) -> DeliveryResult {
    DeliveryResult::Delivered { cursor: cursor(text) }
}

fn given_up(id: &str) -> DeliveryResult {
    let message = Message { id: id.to_owned(), body: format!("{{\"of\":\"{id}\"}}") };
    DeliveryResult::GivenUp { cursor: cursor("e2"), message, attempts: 4, error: "no".to_owned() }
}

fn failed(store: &Store, id: WebhookId) -> Vec<FailedDelivery> {
    store.failed_deliveries(id, None, 99).unwrap().unwrap()
}

fn ids(failed: &[FailedDelivery]) -> Vec<&str> {
    failed.iter().map(|failed| failed.message.id.as_str()).collect()
}

fn webhook_is_stored_and_removed(db: &Database) {
    let store = db.open();
    let created_at = db.later(1);
    let filter = EventFilter {
        services: BTreeSet::from([service("a::b"), service("a::c")]),
        kinds: BTreeSet::from([EventKind::Accepted, EventKind::Status]),
    };
    let webhook = store.create_webhook(&new(filter.clone()), &by_program()).unwrap().unwrap();
    let expected = Webhook {
        id: webhook.id,
        url: "https://example.com/events?a=1".to_owned(),
        filter: filter.clone(),
        created_at,
        attempts: 0,
        next_try_at: None,
        last_error: None,
        disabled_at: None,
        paused_at: None,
        previous_secret_until: None,
        missed_at: None,
        failed: 0,
    };
    assert_eq!(webhook, expected);
    assert_eq!(store.webhooks().unwrap(), [expected]);
    let due = due(&store).unwrap();
    assert_eq!((secrets(&due), due.filter), (vec![vec![1, 0, 255]], filter));
    assert!(store.remove_webhook(webhook.id, &by_program()).unwrap());
    assert!(!store.remove_webhook(webhook.id, &by_program()).unwrap());
    assert!(store.webhooks().unwrap().is_empty());
    assert_ne!(create(&store).id, webhook.id, "an id is not used again");
}

fn secrets(due: &DueWebhook) -> Vec<Vec<u8>> {
    due.secrets.iter().map(|secret| secret.expose().to_vec()).collect()
}

fn change(store: &Store, id: WebhookId, change: &WebhookChange) -> Webhook {
    store.change_webhook(id, change, &by_program()).unwrap().unwrap()
}

fn changed_webhook_has_other_fields_and_ends_its_delivery(db: &Database) {
    let store = db.open();
    let webhook = create(&store);
    let lease = take(&store);
    let kinds = BTreeSet::from([EventKind::Ended]);
    let fields = WebhookChange::Fields { url: None, services: None, kinds: Some(kinds.clone()) };
    let filter = EventFilter { kinds, ..EventFilter::default() };
    let expected = Webhook { filter: filter.clone(), ..webhook };
    assert_eq!(change(&store, expected.id, &fields), expected);
    assert!(!store.delivered(&lease, &delivered("e9")).unwrap(), "it has the former filter");
    assert_eq!(due(&store).unwrap().filter, filter);
    let services = BTreeSet::from([service("a::b")]);
    let url = "https://example.org/".to_owned();
    let fields = WebhookChange::Fields {
        url: Some(url.clone()),
        services: Some(services.clone()),
        kinds: Some(BTreeSet::new()),
    };
    let filter = EventFilter { services, kinds: BTreeSet::new() };
    assert_eq!(change(&store, expected.id, &fields), Webhook { url, filter, ..expected });
    let unknown = store.change_webhook(WebhookId(999), &WebhookChange::Pause, &by_program());
    assert_eq!(unknown.unwrap(), None);
}

fn secret_before_is_used_until_its_end(db: &Database) {
    let store = db.open();
    let id = create(&store).id;
    let previous_until = store.now().plus(Duration::from_secs(60));
    let rotate = WebhookChange::Secret { secret: WebhookSecret::new(vec![2]), previous_until };
    assert_eq!(change(&store, id, &rotate).previous_secret_until, Some(previous_until));
    assert_eq!(secrets(&due(&store).unwrap()), [vec![2], vec![1, 0, 255]]);
    db.later(60);
    assert_eq!(secrets(&due(&store).unwrap()), [vec![2]]);
}

fn paused_webhook_waits_until_it_is_resumed(db: &Database) {
    let store = db.open();
    let id = create(&store).id;
    let lease = take(&store);
    let paused_at = Some(db.now());
    assert_eq!(change(&store, id, &WebhookChange::Pause).paused_at, paused_at);
    assert!(!store.delivered(&lease, &delivered("e9")).unwrap());
    assert_eq!(due(&store), None);
    db.later(1);
    assert_eq!(change(&store, id, &WebhookChange::Pause).paused_at, paused_at);
    assert_eq!(change(&store, id, &WebhookChange::Resume).paused_at, None);
    assert_eq!(due(&store).unwrap().id, id);
}

fn ping_is_a_message_to_send(db: &Database) {
    let store = db.open();
    let id = create(&store).id;
    let message = Message { id: "ping".to_owned(), body: "{}".to_owned() };
    change(&store, id, &WebhookChange::Ping(message.clone()));
    assert!(due(&store).unwrap().has_failed_again);
    let again = store.failed_again(id, 9).unwrap();
    assert_eq!((&again[0].message, again[0].attempts, again.len()), (&message, 0, 1));
}

fn export_of_traces_is_only_paused(db: &Database) {
    let store = db.open();
    store.add_trace_export().unwrap();
    let id = store.webhooks().unwrap()[0].id;
    let ping = WebhookChange::Ping(Message { id: "ping".to_owned(), body: "{}".to_owned() });
    assert_eq!(store.change_webhook(id, &ping, &by_program()).unwrap(), None);
    assert!(change(&store, id, &WebhookChange::Pause).paused_at.is_some());
}

fn webhook_begins_with_later_events(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    create(&store);
    store.add_all(&[batch("a::b", 2)]);
    let from = EventPosition::After(due(&store).unwrap().cursor);
    let page = store.events(&from, &EventFilter::default(), 9).unwrap().unwrap();
    let batches: Vec<_> = page.events.iter().map(|event| event.event.batch_id).collect();
    assert_eq!(batches, [batch("a::b", 2).batch_id]);
}

fn webhooks_are_limited_in_number(db: &Database) {
    let store = db.open();
    let created = (0..200)
        .filter_map(|_| store.create_webhook(&new(EventFilter::default()), &by_program()).unwrap());
    assert_eq!(created.count(), 100);
}

fn one_instance_at_a_time_has_a_webhook(db: &Database) {
    let (store, other) = (db.open(), db.open());
    create(&store);
    let found = due(&other).unwrap();
    let lease = take(&store);
    assert_eq!(other.take_webhook(&found, LEASE).unwrap(), None, "it was taken since");
    assert_eq!(due(&other), None);
    db.later(20);
    assert!(store.delivered(&lease, &delivered("e1")).unwrap());
    db.later(20);
    assert_eq!(due(&other), None, "a result extends the lease");
    db.later(11);
    assert_eq!(due(&other).unwrap().cursor, cursor("e1"));
    let found = due(&other).unwrap();
    assert!(store.delivered(&lease, &delivered("e2")).unwrap(), "no other has taken it");
    assert_eq!(other.take_webhook(&found, LEASE).unwrap(), None, "the position has moved since");
}

fn result_of_an_earlier_lease_changes_nothing(db: &Database) {
    let (store, other) = (db.open(), db.open());
    let webhook = create(&store);
    let earlier = take(&store);
    assert!(store.delivered(&earlier, &given_up("m1")).unwrap());
    db.later(31);
    let later = take(&other);
    let until = db.now();
    let id = failed(&store, webhook.id)[0].id;
    let error = "late".to_owned();
    for result in [
        delivered("e7"),
        DeliveryResult::Missed { cursor: cursor("e7") },
        DeliveryResult::Delayed { cursor: cursor("e7"), attempts: 1, until, error: error.clone() },
        DeliveryResult::Disabled { cursor: cursor("e7"), error: error.clone() },
        given_up("m2"),
        DeliveryResult::DeliveredAgain(id),
        DeliveryResult::FailedAgain { id, error },
    ] {
        let before = (store.webhooks().unwrap(), failed(&store, webhook.id));
        assert!(!store.delivered(&earlier, &result).unwrap(), "{result:?}");
        assert_eq!((store.webhooks().unwrap(), failed(&store, webhook.id)), before, "{result:?}");
    }
    assert!(!store.end_webhook_lease(&earlier).unwrap());
    assert!(other.delivered(&later, &delivered("e3")).unwrap());
    other.remove_webhook(webhook.id, &by_program()).unwrap();
    assert!(!other.delivered(&later, &delivered("e4")).unwrap(), "it was removed");
}

fn ended_lease_is_followed_by_another(db: &Database) {
    let store = db.open();
    create(&store);
    let lease = take(&store);
    assert!(store.end_webhook_lease(&lease).unwrap());
    assert!(!store.delivered(&lease, &delivered("e1")).unwrap(), "a result that is late");
    let next = take(&store);
    assert!(next.number > lease.number);
    assert!(store.delivered(&next, &delivered("e1")).unwrap());
}

fn webhook_that_was_delayed_waits(db: &Database) {
    let store = db.open();
    create(&store);
    let lease = take(&store);
    let until = Timestamp::from_micros(db.now().as_micros() + 90_000_000);
    let error = "zero \0".to_owned() + &"x".repeat(9_000);
    let delayed = DeliveryResult::Delayed { cursor: cursor("e1"), attempts: 3, until, error };
    assert!(store.delivered(&lease, &delayed).unwrap());
    store.end_webhook_lease(&lease).unwrap();
    let webhook = store.webhooks().unwrap().remove(0);
    assert_eq!((webhook.attempts, webhook.next_try_at), (3, Some(until)));
    assert!((4_000..4_100).contains(&webhook.last_error.unwrap().len()));
    db.later(89);
    assert_eq!(due(&store), None);
    db.later(1);
    let found = due(&store).unwrap();
    assert_eq!((found.attempts, found.cursor), (3, cursor("e1")));
    let lease = take(&store);
    assert!(store.delivered(&lease, &delivered("e2")).unwrap());
    let webhook = store.webhooks().unwrap().remove(0);
    assert_eq!((webhook.attempts, webhook.next_try_at, webhook.last_error), (0, None, None));
}

fn webhook_that_is_gone_is_disabled(db: &Database) {
    let store = db.open();
    let webhook = create(&store);
    let lease = take(&store);
    let disabled = DeliveryResult::Disabled { cursor: cursor("e1"), error: "gone".to_owned() };
    assert!(store.delivered(&lease, &disabled).unwrap());
    store.end_webhook_lease(&lease).unwrap();
    assert_eq!(due(&store), None);
    let stored = store.webhooks().unwrap().remove(0);
    assert_eq!((stored.disabled_at, stored.last_error), (Some(db.now()), Some("gone".to_owned())));
    let unknown = Some(FailedDeliveryId(999));
    assert_eq!(store.redeliver(webhook.id, unknown, &by_program()).unwrap(), Some(0));
    assert_eq!(due(&store), None, "nothing is changed for an unknown message");
    assert_eq!(store.redeliver(webhook.id, None, &by_program()).unwrap(), Some(0));
    assert_eq!(due(&store).unwrap().cursor, cursor("e1"), "nothing was skipped");
    assert_eq!(store.webhooks().unwrap()[0].disabled_at, None);
}

fn removed_events_are_told(db: &Database) {
    let store = db.open();
    create(&store);
    let missed = DeliveryResult::Missed { cursor: cursor("e5") };
    let lease = take(&store);
    let at = db.later(1);
    assert!(store.delivered(&lease, &missed).unwrap());
    assert!(store.delivered(&lease, &delivered("e6")).unwrap());
    assert_eq!(store.webhooks().unwrap()[0].missed_at, Some(at));
}

fn message_that_was_given_up_is_kept_and_sent_again(db: &Database) {
    let store = db.open();
    let webhook = create(&store);
    let lease = take(&store);
    let failed_at = db.later(1);
    for id in ["m1", "m2", "m3"] {
        assert!(store.delivered(&lease, &given_up(id)).unwrap());
    }
    store.end_webhook_lease(&lease).unwrap();
    let list = failed(&store, webhook.id);
    assert_eq!(ids(&list), ["m1", "m2", "m3"]);
    assert_eq!((list[0].attempts, list[0].error.as_str(), list[0].again), (4, "no", false));
    assert_eq!((list[0].failed_at, list[0].message.body.as_str()), (failed_at, r#"{"of":"m1"}"#));
    assert_eq!(store.webhooks().unwrap()[0].failed, 3);
    assert!(!due(&store).unwrap().has_failed_again);
    assert!(store.failed_again(webhook.id, 9).unwrap().is_empty());

    assert_eq!(store.redeliver(webhook.id, Some(list[1].id), &by_program()).unwrap(), Some(1));
    assert!(due(&store).unwrap().has_failed_again);
    assert_eq!(ids(&store.failed_again(webhook.id, 9).unwrap()), ["m2"]);
    assert_eq!(store.redeliver(webhook.id, None, &by_program()).unwrap(), Some(3));
    assert_eq!(ids(&store.failed_again(webhook.id, 2).unwrap()), ["m1", "m2"]);
    let lease = take(&store);
    assert!(store.delivered(&lease, &DeliveryResult::DeliveredAgain(list[0].id)).unwrap());
    let error = "still no".to_owned();
    assert!(
        store.delivered(&lease, &DeliveryResult::FailedAgain { id: list[1].id, error }).unwrap()
    );
    let left = failed(&store, webhook.id);
    assert_eq!(ids(&left), ["m2", "m3"]);
    assert_eq!((left[0].attempts, left[0].error.as_str(), left[0].again), (5, "still no", false));
    assert!(left[1].again);
    let unknown = FailedDeliveryId(999);
    assert_eq!(store.redeliver(webhook.id, Some(unknown), &by_program()).unwrap(), Some(0));
    assert_eq!(store.redeliver(WebhookId(999), None, &by_program()).unwrap(), None);
}

fn failed_messages_are_listed_in_pages(db: &Database) {
    let store = db.open();
    let webhook = create(&store);
    let lease = take(&store);
    for id in ["m1", "m2", "m3"] {
        store.delivered(&lease, &given_up(id)).unwrap();
    }
    let page = store.failed_deliveries(webhook.id, None, 2).unwrap().unwrap();
    assert_eq!(ids(&page), ["m1", "m2"]);
    let page = store.failed_deliveries(webhook.id, Some(page[1].id), 2).unwrap().unwrap();
    assert_eq!(ids(&page), ["m3"]);
    assert_eq!(store.failed_deliveries(WebhookId(999), None, 2).unwrap(), None);
}

fn failed_messages_of_another_webhook_stay(db: &Database) {
    let store = db.open();
    let first = create(&store);
    let lease = take(&store);
    store.delivered(&lease, &given_up("m1")).unwrap();
    let second = create(&store);
    let lease = take(&store);
    assert_eq!(lease.webhook, second.id);
    store.delivered(&lease, &given_up("m2")).unwrap();
    let other = failed(&store, first.id)[0].id;
    assert_eq!(store.redeliver(second.id, Some(other), &by_program()).unwrap(), Some(0));
    assert!(store.failed_again(first.id, 9).unwrap().is_empty());
    store.remove_webhook(second.id, &by_program()).unwrap();
    assert_eq!(ids(&failed(&store, first.id)), ["m1"]);
    assert_eq!(db.number("select count(*) as number from failed_deliveries"), 1);
}
