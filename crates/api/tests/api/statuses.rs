use std::{
    thread,
    time::{Duration, Instant},
};

use grid_batch_api::ApiOptions;
use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Event, HeaderId, LedgerStatus, Outcome, Receipt,
};
use grid_batch_protocol::Batch;
use serde_json::json;

use crate::fixture::{Served, batch, body, id, service};

const SERVICE: &str = "a::b";
const JSON: &str = "content-type: application/json";

/// Posts a batch for one service.
fn store(served: &Served, batch: &Batch) -> HeaderId {
    served.post(&format!("/batches?service_id={SERVICE}"), &body([batch.clone()])).link();
    id(batch)
}

/// Has the service's next batch taken and answered.
fn take(served: &Served, outcome: Outcome) -> HeaderId {
    let taken = served.take_batch_of(service(SERVICE));
    record(served, taken.batch_id, Event::Outcome { attempt: taken.attempt, outcome }, &[]);
    taken.batch_id
}

fn record(served: &Served, id: HeaderId, event: Event, receipts: &[Receipt]) {
    let change = Change {
        receipts: receipts.to_vec(),
        error: Some("as told".to_owned()),
        ..Change::new(service(SERVICE), id, event)
    };
    let recorded = served.store.record(&[change]).unwrap();
    assert!(matches!(recorded[0], ChangeOutcome::Applied { .. }), "{recorded:?}");
}

#[test]
fn each_batch_has_the_status_that_clients_know_and_the_order_is_theirs() {
    let served = Served::new();
    let [committed, invalid, pending, new] = [1, 2, 3, 4].map(|n| store(&served, &batch(n)));
    let unknown = HeaderId::from_bytes([9; 64]);
    take(&served, Outcome::Accepted);
    record(&served, committed, Event::status(LedgerStatus::Committed), &[]);
    take(&served, Outcome::Accepted);
    let transaction = HeaderId::from_bytes([5; 64]);
    let receipts = [
        Receipt {
            transaction_id: Some(transaction),
            error_message: "no such key".to_owned(),
            error_data: vec![0, 255],
        },
        Receipt { transaction_id: None, error_message: String::new(), error_data: vec![] },
    ];
    record(&served, invalid, Event::status(LedgerStatus::Invalid), &receipts);
    take(&served, Outcome::Accepted);

    let ids = [new, unknown, committed, pending, invalid, new];
    let text = ids.map(|id| id.to_string());
    let path = format!("/batch_statuses?id={}", text.join(","));
    let answer = served.get(&path);
    let expected = ["PENDING", "UNKNOWN", "COMMITTED", "PENDING", "INVALID", "PENDING"];
    assert_eq!(answer.statuses(), expected);
    let json = answer.json();
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
    let posted = served.client().ask("POST", "/batch_statuses", &[JSON], &body).json();
    assert_eq!(posted["data"], json["data"]);
    assert!(posted.get("link").is_none());
}

#[test]
fn how_far_a_stored_batch_has_come_is_said_beside_its_status() {
    let served = Served::new();
    let id = store(&served, &batch(1));
    let progress = || served.get_status(&id).json()["data"][0]["progress"].clone();
    assert_eq!(
        progress(),
        json!({
            "service_id": "a::b", "submitted": false, "dlt_status": null, "attempts": 0, "last_error": null,
        })
    );
    take(&served, Outcome::Busy);
    assert_eq!(
        progress(),
        json!({
            "service_id": "a::b", "submitted": false, "dlt_status": "DELAYED", "attempts": 1,
            "last_error": "as told",
        })
    );
    assert_eq!(served.store.find(&id).unwrap()[0].progress.state, BatchState::Delayed);
}

#[test]
fn a_batch_of_several_services_needs_a_service() {
    let served = Served::new();
    let list = body([batch(1)]);
    let path = format!("/batch_statuses?id={}", id(&batch(1)));
    served.post("/batches?service_id=a::b", &list).link();
    assert_eq!(served.get(&path).statuses(), ["PENDING"]);
    assert_eq!(served.get(&format!("{path}&service_id=a::c")).statuses(), ["UNKNOWN"]);

    served.post("/batches?service_id=a::c", &list).link();
    let answer = served.get(&path);
    assert_eq!(answer.error(), (400, 1009));
    assert!(answer.message().contains("service_id"), "{}", answer.message());
    let named = served.get(&format!("{path}&service_id=a::c")).json();
    assert_eq!(named["data"][0]["progress"]["service_id"], "a::c");
}

#[test]
fn questions_that_cannot_be_answered_are_refused_as_sawtooth_does() {
    let served = Served::new();
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
        let answer = served.get(&format!("/batch_statuses{query}"));
        assert_eq!(answer.error(), (400, code), "{query}");
    }
    for (header, body, code) in [
        (JSON, "[]", 46),
        (JSON, "{", 46),
        (JSON, "[1]", 46),
        (JSON, "\"a\"", 46),
        (JSON, "", 46),
        (JSON, "[\"\u{0}\"]", 46),
        (JSON, "[\"zz\"]", 60),
        ("content-type: application/octet-stream", "x", 43),
    ] {
        let answer = served.client().ask("POST", "/batch_statuses", &[header], body.as_bytes());
        assert_eq!(answer.error(), (400, code), "{body}");
    }
    let deep = [b'['; 10_000];
    let answer = served.client().ask("POST", "/batch_statuses", &[JSON], &deep);
    assert_eq!(answer.error(), (400, 46));
}

#[test]
fn a_thousand_ids_are_answered_and_one_more_is_not() {
    let served = Served::new();
    let ids = |count: u64| {
        let ids = (0..count).map(|number| format!("{number:0128x}"));
        serde_json::to_vec(&ids.collect::<Vec<_>>()).unwrap()
    };
    let ask = |body: &[u8]| served.client().ask("POST", "/batch_statuses", &[JSON], body);
    assert_eq!(ask(&ids(1_000)).statuses(), vec!["UNKNOWN"; 1_000]);
    assert_eq!(ask(&ids(1_001)).error(), (400, 1010));
    assert_eq!(ask(&ids(3_000)).error(), (413, 1003));

    let fit = vec!["0".repeat(128); 500].join(",");
    assert_eq!(served.get(&format!("/batch_statuses?id={fit}")).statuses().len(), 500);
}

#[test]
fn a_wait_ends_when_nothing_is_pending_any_more() {
    let served = Served::new();
    let [one, two] = [1, 2].map(|n| store(&served, &batch(n)));
    let path = format!("/batch_statuses?id={two},{one}&wait=20");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&path).statuses());
        for id in [one, two] {
            take(&served, Outcome::Accepted);
            record(&served, id, Event::status(LedgerStatus::Committed), &[]);
        }
        assert_eq!(waiting.join().unwrap(), ["COMMITTED", "COMMITTED"]);
    });
    assert_eq!(served.get(&path).statuses(), ["COMMITTED", "COMMITTED"]);
}

#[test]
fn a_wait_for_what_is_not_stored_ends_at_once() {
    let served = Served::new();
    let begun = Instant::now();
    let answer = served.get(&format!("/batch_statuses?id={}&wait=20", "a".repeat(128)));
    assert_eq!(answer.statuses(), ["UNKNOWN"]);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_wait_is_cut_at_its_limit_and_then_says_how_all_stand() {
    let wait_limit = Duration::from_millis(300);
    let served = Served::with_options(ApiOptions { wait_limit, ..ApiOptions::default() });
    let [one, two] = [1, 2].map(|n| store(&served, &batch(n)));
    let begun = Instant::now();
    let path = format!("/batch_statuses?id={two},{one}&wait=300");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&path).statuses());
        take(&served, Outcome::Accepted);
        record(&served, one, Event::status(LedgerStatus::Committed), &[]);
        assert_eq!(waiting.join().unwrap(), ["PENDING", "COMMITTED"]);
    });
    assert!((wait_limit..Duration::from_secs(10)).contains(&begun.elapsed()));
}

#[test]
fn one_for_whom_there_is_no_place_to_wait_is_answered_within_a_second_or_so() {
    let served = Served::with_options(ApiOptions { waiters: 0, ..ApiOptions::default() });
    let id = store(&served, &batch(1));
    let begun = Instant::now();
    let answer = served.get(&format!("/batch_statuses?id={id}&wait=20"));
    assert_eq!(answer.statuses(), ["PENDING"]);
    assert!((1..10).contains(&begun.elapsed().as_secs()));
}
