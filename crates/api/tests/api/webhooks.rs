//! Webhooks over HTTP.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_api::ApiBuilder;
use grid_batch_core::events::{EventFilter, EventKind};
use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore, MockWebhookStore};
use grid_batch_core::webhooks::{
    AllowedNetworks, Backlog, DeliveryResult, DueWebhook, FailedDelivery, FailedDeliveryId,
    Message, Webhook, WebhookId, WebhookStore,
};
use grid_batch_core::{BatchError, Timestamp};
use serde_json::{Value, json};

use crate::{
    client::{Client, Response},
    test_server::{TestServer, serve, service, test_hosts},
};

fn server() -> TestServer {
    TestServer::with(|builder, store| {
        builder.with_webhooks(store.clone(), AllowedNetworks::default())
    })
}

fn create(client: &mut Client, body: &Value) -> Response {
    let mut body = body.clone();
    body["reason"] = "a test".into();
    let body = body.to_string();
    client.request("POST", "/v1/webhooks", &["content-type: application/json"], body.as_bytes())
}

fn created(server: &TestServer) -> Value {
    let body = json!({ "url": "https://example.com/events?token=5" });
    let response = create(&mut server.client(), &body);
    assert_eq!(response.status, 201);
    response.json()
}

fn with_reason(server: &TestServer, path: &str) -> Response {
    let json = ["content-type: application/json"];
    server.client().request("POST", path, &json, br#"{"reason": "a test"}"#)
}

#[test]
fn webhook_is_created_listed_and_removed() {
    let server = server();
    let body = json!({
        "url": "https://example.com/events",
        "services": ["a::c", "a::b"],
        "kinds": ["status", "accepted"],
    });
    let response = create(&mut server.client(), &body);
    assert_eq!(response.status, 201);
    let mut webhook = response.json();
    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    assert_eq!(response.header("location"), Some(path.as_str()));
    let secret = webhook.as_object_mut().unwrap().remove("secret").unwrap();
    assert!(secret.as_str().unwrap().starts_with("whsec_"), "{secret}");
    assert_eq!(secret.as_str().unwrap().len(), "whsec_".len() + 32);
    assert_eq!(webhook["services"], json!(["a::b", "a::c"]));
    assert_eq!(webhook["kinds"], json!(["accepted", "status"]));
    assert!(webhook["created_at"].as_str().unwrap().ends_with('Z'));
    for name in ["next_try_at", "last_error", "disabled_at", "missed_at"] {
        assert_eq!(webhook[name], Value::Null, "{name}");
    }
    assert_eq!((&webhook["attempts"], &webhook["failed"]), (&json!(0), &json!(0)));

    (webhook["waiting"], webhook["more_waiting"]) = (json!(0), json!(false));
    assert_eq!(server.get(&path).json(), webhook, "without the secret");
    let list = json!({ "data": [webhook], "next": null });
    assert_eq!(server.get("/v1/webhooks").json(), list);
    let unexplained = server.client().request("DELETE", &path, &[], b"");
    assert_eq!(unexplained.error(), (400, 1023));
    let remove = |more: &str| {
        server.client().request("DELETE", &format!("{path}?reason=a+test{more}"), &[], b"")
    };
    assert_eq!(remove("&dry_run=true").status, 204);
    assert_eq!(server.get("/v1/webhooks").json(), list, "a dry run removes nothing");
    assert_eq!(remove("").status, 204);
    assert_eq!(remove("").error(), (404, 1084));
    assert_eq!(server.get(&path).error(), (404, 1084));
}

#[test]
fn secrets_differ_and_are_those_that_are_stored() {
    let server = server();
    let secrets = [created(&server), created(&server)].map(|webhook| webhook["secret"].clone());
    assert_ne!(secrets[0], secrets[1]);
    let stored = server.store.due_webhooks().unwrap();
    let text =
        |due: &DueWebhook| format!("whsec_{}", BASE64_STANDARD.encode(due.secrets[0].expose()));
    let stored: Vec<String> = stored.iter().map(text).collect();
    assert_eq!(json!(stored), json!(secrets));
}

/// Does something to a webhook.
fn act(server: &TestServer, webhook: &Value, verb: &str, fields: &Value) -> Response {
    let path = format!("/v1/webhooks/{}/{verb}", webhook["id"].as_str().unwrap());
    let mut body = fields.clone();
    body["reason"] = "a test".into();
    let headers = ["content-type: application/json"];
    server.client().request("POST", &path, &headers, body.to_string().as_bytes())
}

#[test]
fn webhook_is_changed_paused_and_resumed() {
    let server = server();
    let webhook = created(&server);
    let fields = json!({ "url": "https://example.org/", "kinds": ["ended"], "services": ["a::b"] });
    let changed = act(&server, &webhook, "change", &fields).json();
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&changed[name], value);
    }
    assert_eq!(
        act(&server, &webhook, "change", &json!({ "kinds": [] })).json()["kinds"],
        json!([])
    );
    for refused in [
        json!({ "url": "http://10.0.0.1/" }),
        json!({ "kinds": ["finished"] }),
        json!({ "kinds": null, "more": 1 }),
    ] {
        assert_eq!(act(&server, &webhook, "change", &refused).status, 400, "{refused}");
    }
    assert!(act(&server, &webhook, "pause", &json!({})).json()["paused_at"].is_string());
    assert!(server.store.due_webhooks().unwrap().is_empty());
    let dry_run = act(&server, &webhook, "resume", &json!({ "dry_run": true }));
    assert_eq!(dry_run.json()["paused_at"], Value::Null);
    assert!(server.store.due_webhooks().unwrap().is_empty());
    assert_eq!(act(&server, &webhook, "resume", &json!({})).json()["paused_at"], Value::Null);
    assert_eq!(server.store.due_webhooks().unwrap().len(), 1);
    for verb in ["change", "rotate", "pause", "resume", "ping"] {
        let unknown = act(&server, &json!({ "id": "999" }), verb, &json!({}));
        assert_eq!(unknown.error(), (404, 1084), "{verb}");
    }
}

#[test]
fn secret_is_rotated_and_the_one_before_kept() {
    let server = server();
    let webhook = created(&server);
    let dry_run = json!({ "dry_run": true });
    assert_eq!(act(&server, &webhook, "rotate", &dry_run).json()["secret"], Value::Null);
    let rotated = act(&server, &webhook, "rotate", &json!({ "keep_seconds": 3600 })).json();
    assert!(rotated["previous_secret_until"].is_string());
    let due = server.store.due_webhooks().unwrap().remove(0);
    let secrets: Vec<String> = due
        .secrets
        .iter()
        .map(|secret| format!("whsec_{}", BASE64_STANDARD.encode(secret.expose())))
        .collect();
    assert_eq!(json!(secrets), json!([rotated["secret"], webhook["secret"]]));
    act(&server, &webhook, "rotate", &json!({ "keep_seconds": 0 }));
    assert_eq!(server.store.due_webhooks().unwrap()[0].secrets.len(), 1);
    let too_long = json!({ "keep_seconds": 31 * 24 * 3600 });
    assert_eq!(act(&server, &webhook, "rotate", &too_long).error(), (400, 1023));
}

#[test]
fn ping_is_listed_until_it_is_delivered() {
    let server = server();
    let webhook = created(&server);
    let response = act(&server, &webhook, "ping", &json!({}));
    assert_eq!(response.status, 202);
    let failed =
        server.get(&format!("/v1/webhooks/{}/failed", webhook["id"].as_str().unwrap())).json();
    let listed = &failed["data"][0];
    assert_eq!(listed["message_id"], response.json()["message_id"]);
    assert_eq!((&listed["body"]["type"], &listed["again"]), (&json!("webhook.ping"), &json!(true)));
}

#[test]
fn invalid_requests_are_refused() {
    let server = server();
    for (body, code) in [
        (json!({}), 1023),
        (json!({ "url": 5 }), 1023),
        (json!({ "url": "example.com/events" }), 1023),
        (json!({ "url": "ftp://example.com/events" }), 1023),
        (json!({ "url": "http://127.0.0.1/events" }), 1023),
        (json!({ "url": "http://[fd00::1]/events" }), 1023),
        (json!({ "url": "https://me:secret@example.com/events" }), 1023),
        (json!({ "url": format!("https://example.com/{}", "x".repeat(2_048)) }), 1023),
        (json!({ "url": "https://example.com/", "kinds": ["finished"] }), 1023),
        (json!({ "url": "https://example.com/", "kinds": "status" }), 1023),
        (json!({ "url": "https://example.com/", "services": [5] }), 1023),
        (json!({ "url": "https://example.com/", "services": vec!["a::b"; 101] }), 1023),
        (json!({ "url": "https://example.com/", "services": ["a\nb"] }), 1008),
        (json!({ "url": "https://example.com/", "secret": "whsec_AAAA" }), 1022),
    ] {
        let response = create(&mut server.client(), &body);
        assert_eq!(response.error(), (400, code), "{body}");
        assert!(!String::from_utf8_lossy(&response.body).contains("secret@"), "{body}");
    }
    let id = created(&server)["id"].as_str().unwrap().to_owned();
    for (path, expected) in [
        (format!("/v1/webhooks/{id}/failed?limit=0"), (400, 1023)),
        (format!("/v1/webhooks/{id}/failed?after=x"), (400, 1023)),
        (format!("/v1/webhooks/{id}/failed?before=1"), (400, 1007)),
        (format!("/v1/webhooks/{id}?limit=1"), (400, 1007)),
        ("/v1/webhooks?limit=1".to_owned(), (400, 1007)),
        ("/v1/webhooks/none/failed".to_owned(), (404, 1084)),
        ("/v1/webhooks/999/failed".to_owned(), (404, 1084)),
    ] {
        assert_eq!(server.get(&path).error(), expected, "{path}");
    }
    let redeliver = |path: &str| with_reason(&server, path).error();
    assert_eq!(redeliver(&format!("/v1/webhooks/{id}/redeliver?failed=x")), (400, 1023));
    assert_eq!(redeliver("/v1/webhooks/999/redeliver"), (404, 1084));
    assert_eq!(redeliver(&format!("/v1/webhooks/{id}/redeliver?failed=999")), (404, 1071));
}

#[test]
fn failed_messages_are_listed_and_sent_again() {
    let server = server();
    let id = created(&server)["id"].as_str().unwrap().to_owned();
    let due = server.store.due_webhooks().unwrap().remove(0);
    let lease = server.store.take_webhook(&due, Duration::from_secs(60)).unwrap().unwrap();
    for name in ["m1", "m2", "m3"] {
        let message =
            Message { id: name.to_owned(), body: r#"{"type":"batch.status"}"#.to_owned() };
        let (cursor, error) = (due.cursor.clone(), "no answer".to_owned());
        let given_up = DeliveryResult::GivenUp { cursor, message, attempts: 2, error };
        assert!(server.store.delivered(&lease, &given_up).unwrap());
    }
    let path = format!("/v1/webhooks/{id}/failed");
    let page = server.get(&format!("{path}?limit=2")).json();
    let names = |page: &Value| -> Vec<Value> {
        let data = page["data"].as_array().unwrap();
        data.iter().map(|failed| failed["message_id"].clone()).collect()
    };
    assert_eq!(names(&page), ["m1", "m2"]);
    let failed = &page["data"][0];
    assert_eq!((&failed["attempts"], &failed["error"]), (&json!(2), &json!("no answer")));
    assert_eq!(
        (&failed["again"], &failed["body"]["type"]),
        (&json!(false), &json!("batch.status"))
    );
    let rest = server.get(&format!("{path}?after={}", page["next"].as_str().unwrap())).json();
    assert_eq!((names(&rest), &rest["next"]), (vec![json!("m3")], &Value::Null));
    assert_eq!(server.get(&format!("/v1/webhooks/{id}")).json()["failed"], 3);

    let redeliver = |query: &str| {
        let path = format!("/v1/webhooks/{id}/redeliver{query}");
        with_reason(&server, &path).json()
    };
    let first = failed["id"].as_str().unwrap();
    assert_eq!(redeliver(&format!("?failed={first}")), json!({ "messages": 1 }));
    assert_eq!(server.get(&path).json()["data"][0]["again"], true);
    assert_eq!(redeliver(""), json!({ "messages": 3 }));
}

/// A server over this store alone.
fn over(store: MockWebhookStore) -> Client {
    let builder =
        ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(MockBatchQueryStore::new()));
    let builder = builder
        .with_allowed_hosts(test_hosts())
        .with_webhooks(Arc::new(store), AllowedNetworks::default());
    let (api, address) = serve(builder);
    // It serves until the test ends.
    std::mem::forget(api);
    Client::connect(address)
}

#[test]
fn state_of_a_webhook_is_shown() {
    let mut store = MockWebhookStore::new();
    let at = Timestamp::from_micros;
    let webhook = Webhook {
        id: WebhookId(7),
        url: "https://example.com/".to_owned(),
        filter: EventFilter {
            services: BTreeSet::from([service("a::b")]),
            kinds: BTreeSet::from([EventKind::Held]),
        },
        created_at: at(1),
        attempts: 4,
        next_try_at: Some(at(2)),
        last_error: Some("refused".to_owned()),
        disabled_at: Some(at(3)),
        paused_at: Some(at(5)),
        previous_secret_until: Some(at(6)),
        missed_at: Some(at(4)),
        failed: 9,
    };
    store.expect_webhooks().return_once(|| Ok(vec![webhook]));
    store
        .expect_backlog()
        .withf(|id| *id == WebhookId(7))
        .return_once(|_| Ok(Some(Backlog { count: 1_000, more: true })));
    let shown = over(store).request("GET", "/v1/webhooks/7", &[], b"").json();
    let expected = json!({
        "id": "7",
        "url": "https://example.com/",
        "services": ["a::b"],
        "kinds": ["held"],
        "created_at": "1970-01-01T00:00:00.000001Z",
        "attempts": 4,
        "next_try_at": "1970-01-01T00:00:00.000002Z",
        "last_error": "refused",
        "disabled_at": "1970-01-01T00:00:00.000003Z",
        "paused_at": "1970-01-01T00:00:00.000005Z",
        "previous_secret_until": "1970-01-01T00:00:00.000006Z",
        "missed_at": "1970-01-01T00:00:00.000004Z",
        "failed": 9,
        "waiting": 1_000,
        "more_waiting": true,
    });
    assert_eq!(shown, expected);
}

#[test]
fn store_that_takes_no_more_or_fails_is_an_error() {
    let body = json!({ "url": "https://example.com/" });
    let mut store = MockWebhookStore::new();
    store.expect_create_webhook().return_once(|_, _| Ok(None));
    assert_eq!(create(&mut over(store), &body).error(), (409, 1085));

    let unavailable = || BatchError::Unavailable("the disk of whsec_AAAA".to_owned());
    let mut store = MockWebhookStore::new();
    store.expect_create_webhook().returning(move |_, _| Err(unavailable()));
    store.expect_failed_deliveries().returning(move |_, _, _| Err(unavailable()));
    let mut client = over(store);
    for response in
        [create(&mut client, &body), client.request("GET", "/v1/webhooks/7/failed", &[], b"")]
    {
        assert_eq!(response.status, 503);
        assert!(!String::from_utf8_lossy(&response.body).contains("whsec_"));
    }
}

#[test]
fn body_that_is_no_json_is_shown_as_null() {
    let failed = FailedDelivery {
        id: FailedDeliveryId(4),
        message: Message { id: "m".to_owned(), body: "?".to_owned() },
        attempts: 1,
        error: String::new(),
        failed_at: Timestamp::from_micros(0),
        again: false,
    };
    let mut store = MockWebhookStore::new();
    store
        .expect_failed_deliveries()
        .withf(|id, after, limit| {
            (*id, *after, *limit) == (WebhookId(7), Some(FailedDeliveryId(3)), 2)
        })
        .return_once(|_, _, _| Ok(Some(vec![failed])));
    let response = over(store).request("GET", "/v1/webhooks/7/failed?after=3&limit=1", &[], b"");
    assert_eq!(response.json()["data"][0]["body"], Value::Null);
}

#[test]
fn webhooks_are_not_served_without_a_store() {
    assert_eq!(TestServer::new().get("/v1/webhooks").error(), (404, 1001));
}
