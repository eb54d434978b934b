use std::time::Duration;

use grid_batch_core::events::EventFilter;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::webhooks::{
    DeliveryResult, Message, NewWebhook, WebhookChange, WebhookSecret, WebhookStore,
};

use crate::Store;

/// Stores a webhook and results of deliveries.
pub(super) fn use_webhooks(store: &Store) {
    let secret = WebhookSecret::new(vec![1]);
    let url = "http://example.com".to_owned();
    let new = NewWebhook { url, secret, filter: EventFilter::default() };
    let webhook = store.create_webhook(&new, &OperatorRequest::program()).unwrap().unwrap().id;
    let due = store.due_webhooks().unwrap().remove(0);
    let lease = store.take_webhook(&due, Duration::from_secs(9)).unwrap().unwrap();
    let (cursor, error, until) = (due.cursor, "no".to_owned(), store.now());
    let message = Message { id: "m".to_owned(), body: "{}".to_owned() };
    let given_up = DeliveryResult::GivenUp {
        cursor: cursor.clone(),
        message,
        attempts: 1,
        error: error.clone(),
    };
    let stored = |result| assert!(store.delivered(&lease, &result).unwrap());
    for result in [
        DeliveryResult::Delivered { cursor: cursor.clone() },
        DeliveryResult::Missed { cursor: cursor.clone() },
        DeliveryResult::Delayed {
            cursor: cursor.clone(),
            attempts: 1,
            until,
            error: error.clone(),
        },
        DeliveryResult::Disabled { cursor, error: error.clone() },
        given_up,
    ] {
        stored(result);
    }
    let id = store.failed_deliveries(webhook, None, 9).unwrap().unwrap().remove(0).id;
    store.redeliver(webhook, Some(id), &OperatorRequest::program()).unwrap();
    store.redeliver(webhook, None, &OperatorRequest::program()).unwrap();
    assert_eq!(store.failed_again(webhook, 9).unwrap().len(), 1);
    stored(DeliveryResult::FailedAgain { id, error });
    stored(DeliveryResult::DeliveredAgain(id));
    assert!(store.end_webhook_lease(&lease).unwrap());
    assert_eq!(store.webhooks().unwrap().len(), 1);
    assert!(store.backlog(webhook).unwrap().is_some());
    let (secret, previous_until) = (WebhookSecret::new(vec![2]), store.now());
    for change in [
        WebhookChange::Fields { url: None, services: None, kinds: None },
        WebhookChange::Secret { secret, previous_until },
        WebhookChange::Pause,
        WebhookChange::Resume,
        WebhookChange::Ping(Message { id: "p".to_owned(), body: "{}".to_owned() }),
    ] {
        store.change_webhook(webhook, &change, &OperatorRequest::program()).unwrap().unwrap();
    }
    assert!(store.remove_webhook(webhook, &OperatorRequest::program()).unwrap());
    store.add_trace_export().unwrap();
}
