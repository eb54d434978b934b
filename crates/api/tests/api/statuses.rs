use std::{
    thread,
    time::{Duration, Instant},
};

use grid_batch_api::ApiOptions;
use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Event, LedgerStatus, Receipt};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_protocol::Batch;
use serde_json::json;

use crate::test_server::{TestServer, batch, body, id, service};

const SERVICE: &str = "a::b";
const JSON: &str = "content-type: application/json";

/// Posts a batch of the service.
fn submit(server: &TestServer, batch: &Batch) -> ItemId {
    server.post(&format!("/batches?service_id={SERVICE}"), &body([batch.clone()])).link();
    id(batch)
}

/// Takes the next batch of the service, and records the outcome of its submission.
pub fn attempt(server: &TestServer, outcome: Outcome) -> ItemId {
    let taken = server.take_batch_of(service(SERVICE));
    record(server, taken.batch_id, Event::Outcome { attempt: taken.attempt, outcome }, &[]);
    taken.batch_id
}

pub fn record(server: &TestServer, id: ItemId, event: Event, receipts: &[Receipt]) {
    let change = Change {
        receipts: receipts.to_vec(),
        error: Some("test error".to_owned()),
        ..Change::new(service(SERVICE), id, event)
    };
    let recorded = server.store.record(&[change]).unwrap();
    assert!(matches!(recorded[0], ChangeOutcome::Applied { .. }), "{recorded:?}");
}

#[test]
fn statuses_are_those_of_sawtooth_in_request_order() {
    let server = TestServer::new();
    let [committed, invalid, pending, new] = [1, 2, 3, 4].map(|n| submit(&server, &batch(n)));
    let unknown = ItemId::from_bytes([9; 64]);
    attempt(&server, Outcome::Accepted);
    record(&server, committed, Event::status(LedgerStatus::Committed), &[]);
    attempt(&server, Outcome::Accepted);
    let transaction = ItemId::from_bytes([5; 64]);
    let receipts = [
        Receipt {
            transaction_id: Some(transaction),
            error_message: "no such key".to_owned(),
            error_data: vec![0, 255],
        },
        Receipt { transaction_id: None, error_message: String::new(), error_data: vec![] },
    ];
    record(&server, invalid, Event::status(LedgerStatus::Invalid), &receipts);
    attempt(&server, Outcome::Accepted);

    let ids = [new, unknown, committed, pending, invalid, new];
    let text = ids.map(|id| id.to_string());
    let path = format!("/batch_statuses?id={}", text.join(","));
    let response = server.get(&path);
    let expected = ["PENDING", "UNKNOWN", "COMMITTED", "PENDING", "INVALID", "PENDING"];
    assert_eq!(response.statuses(), expected);
    let json = response.json();
    assert_eq!(json["link"], format!("http://grid.test{path}"));
    for (position, id) in text.iter().enumerate() {
        assert_eq!(json["data"][position]["id"], id.as_str());
    }
    assert_eq!(
        json["data"][1],
        json!({
            "id": unknown.to_string(), "status": "UNKNOWN", "invalid_transactions": [],
        })
    );
    assert_eq!(
        json["data"][4]["invalid_transactions"],
        json!([
            { "id": transaction.to_string(), "message": "no such key", "extended_data": "AP8=" },
            {},
        ])
    );

    let body = serde_json::to_vec(&text).unwrap();
    let posted = server.client().request("POST", "/batch_statuses", &[JSON], &body).json();
    assert_eq!(posted["data"], json["data"]);
    assert!(posted.get("link").is_none());
}

#[test]
fn progress_of_a_stored_batch_is_reported() {
    let server = TestServer::new();
    let id = submit(&server, &batch(1));
    let progress = || server.get_status(&id).json()["data"][0]["progress"].clone();
    let new = progress();
    assert_eq!(
        new,
        json!({
            "service_id": "a::b", "submitted": false, "dlt_status": null, "attempts": 0, "last_error": null,
            "submitted_at": null, "checked_at": null,
            "wait": {
                "cause": "submission", "text": "its submission, as the next of its service",
                "ends": "its submission by the owner of its service",
                "since": new["wait"]["since"], "next_try_at": null, "held": null, "behind": null,
            },
        })
    );
    attempt(&server, Outcome::Busy);
    let delayed = progress();
    assert!(delayed["submitted_at"].is_string() && delayed["wait"]["since"].is_string());
    assert_eq!(
        delayed,
        json!({
            "service_id": "a::b", "submitted": false, "dlt_status": "DELAYED", "attempts": 1,
            "last_error": "test error", "submitted_at": delayed["submitted_at"], "checked_at": null,
            "wait": {
                "cause": "delayed", "text": "its next try; the last one failed: test error",
                "ends": "the next try, at `next_try_at`",
                "since": delayed["wait"]["since"], "next_try_at": null, "held": null, "behind": null,
            },
        })
    );
    assert_eq!(server.store.find(&id).unwrap()[0].progress.state, BatchState::Delayed);
}

#[test]
fn waiting_batches_name_the_first_one_and_its_hold() {
    let server = TestServer::new();
    let ids = [1, 2, 3].map(|number| submit(&server, &batch(number)));
    server.store.hold_batch(&service(SERVICE), &ids[0], "look first").unwrap();
    let text = ids.map(|id| id.to_string()).join(",");
    let json = server.get(&format!("/batch_statuses?id={text}")).json();
    let wait = |position: usize| json["data"][position]["progress"]["wait"].clone();
    let first = wait(0);
    assert_eq!((&first["cause"], &first["behind"]), (&json!("held"), &json!(null)));
    assert_eq!(first["held"]["reason"], "held by an operator: look first");
    let expected_head = |ahead: u64| {
        let mut head = first.clone();
        head.as_object_mut().unwrap().remove("behind");
        json!({
            "batch_id": ids[0].to_string(), "ahead": ahead, "more_ahead": false, "attempts": 0,
            "last_error": null, "wait": head,
        })
    };
    for position in [1, 2] {
        assert_eq!(wait(position)["cause"], "behind");
        assert_eq!(wait(position)["behind"], expected_head(position as u64));
    }
}

#[test]
fn ended_batches_do_not_wait() {
    let server = TestServer::new();
    let id = submit(&server, &batch(1));
    attempt(&server, Outcome::Accepted);
    record(&server, id, Event::status(LedgerStatus::Committed), &[]);
    assert!(server.get_status(&id).json()["data"][0]["progress"].get("wait").is_none());
}

#[test]
fn batch_of_several_services_needs_a_service_id() {
    let server = TestServer::new();
    let list = body([batch(1)]);
    let path = format!("/batch_statuses?id={}", id(&batch(1)));
    server.post("/batches?service_id=a::b", &list).link();
    assert_eq!(server.get(&path).statuses(), ["PENDING"]);
    assert_eq!(server.get(&format!("{path}&service_id=a::c")).statuses(), ["UNKNOWN"]);

    server.post("/batches?service_id=a::c", &list).link();
    let response = server.get(&path);
    assert_eq!(response.error(), (400, 1009));
    assert!(response.message().contains("service_id"), "{}", response.message());
    let named = server.get(&format!("{path}&service_id=a::c")).json();
    assert_eq!(named["data"][0]["progress"]["service_id"], "a::c");
}

#[test]
fn invalid_requests_have_the_codes_of_sawtooth() {
    let server = TestServer::new();
    let upper = "A".repeat(128);
    let good = "a".repeat(128);
    for (query, code) in [
        ("", 66),
        ("?id", 66),
        ("?id=", 66),
        ("?wait=1", 66),
        ("?id=zz", 60),
        (&format!("?id={upper}"), 60),
        (&format!("?id={good},"), 60),
        ("?id=%zz", 1007),
        ("?id=%ff", 1007),
        (&format!("?id={good}&service_id="), 1008),
    ] {
        let response = server.get(&format!("/batch_statuses{query}"));
        assert_eq!(response.error(), (400, code), "{query}");
    }
    for (header, body, code) in [
        (JSON, "[]", 46),
        (JSON, "{", 46),
        (JSON, "[1]", 46),
        (JSON, "\"a\"", 46),
        (JSON, "", 46),
        (JSON, "[\"\u{0}\"]", 46),
        (JSON, "[\"zz\"]", 60),
    ] {
        let response =
            server.client().request("POST", "/batch_statuses", &[header], body.as_bytes());
        assert_eq!(response.error(), (400, code), "{body}");
    }
    let octets = ["content-type: application/octet-stream"];
    let response = server.client().request("POST", "/batch_statuses", &octets, b"[]");
    assert_eq!(response.error(), (400, 43));
    let deep = [b'['; 10_000];
    let response = server.client().request("POST", "/batch_statuses", &[JSON], &deep);
    assert_eq!(response.error(), (400, 46));
}

#[test]
fn request_has_at_most_a_thousand_ids() {
    let server = TestServer::new();
    let ids = |count: u64| {
        let ids = (0..count).map(|number| format!("{number:0128x}"));
        serde_json::to_vec(&ids.collect::<Vec<_>>()).unwrap()
    };
    let post = |body: &[u8]| server.client().request("POST", "/batch_statuses", &[JSON], body);
    assert_eq!(post(&ids(1_000)).statuses(), vec!["UNKNOWN"; 1_000]);
    assert_eq!(post(&ids(1_001)).error(), (400, 1010));
    assert_eq!(post(&ids(3_000)).error(), (413, 1003));

    let fit = vec!["0".repeat(128); 500].join(",");
    assert_eq!(server.get(&format!("/batch_statuses?id={fit}")).statuses().len(), 500);
}

#[test]
fn wait_ends_when_no_batch_is_pending() {
    let server = TestServer::new();
    let [one, two] = [1, 2].map(|n| submit(&server, &batch(n)));
    let path = format!("/batch_statuses?id={two},{one}&wait=20");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get(&path).statuses());
        for id in [one, two] {
            attempt(&server, Outcome::Accepted);
            record(&server, id, Event::status(LedgerStatus::Committed), &[]);
        }
        assert_eq!(waiting.join().unwrap(), ["COMMITTED", "COMMITTED"]);
    });
    assert_eq!(server.get(&path).statuses(), ["COMMITTED", "COMMITTED"]);
}

#[test]
fn unknown_batch_is_not_waited_for() {
    let server = TestServer::new();
    let started = Instant::now();
    let response = server.get(&format!("/batch_statuses?id={}&wait=20", "a".repeat(128)));
    assert_eq!(response.statuses(), ["UNKNOWN"]);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn wait_ends_at_its_limit_with_all_statuses() {
    let status_wait_limit = Duration::from_millis(300);
    let server =
        TestServer::with_options(ApiOptions { status_wait_limit, ..ApiOptions::default() });
    let [one, two] = [1, 2].map(|n| submit(&server, &batch(n)));
    attempt(&server, Outcome::Accepted);
    record(&server, one, Event::status(LedgerStatus::Committed), &[]);
    let started = Instant::now();
    let response = server.get(&format!("/batch_statuses?id={two},{one}&wait=300"));
    assert_eq!(response.statuses(), ["PENDING", "COMMITTED"]);
    assert!((status_wait_limit..Duration::from_secs(10)).contains(&started.elapsed()));
}

#[test]
fn wait_without_a_slot_is_short() {
    let server =
        TestServer::with_options(ApiOptions { max_status_waiters: 0, ..ApiOptions::default() });
    let id = submit(&server, &batch(1));
    let started = Instant::now();
    let response = server.get(&format!("/batch_statuses?id={id}&wait=20"));
    assert_eq!(response.statuses(), ["PENDING"]);
    assert!((1..10).contains(&started.elapsed().as_secs()));
}
