//! `GET /v1/batches/{id}` and its bytes.

use grid_batch_core::batches::{Change, Event, Receipt};
use grid_batch_core::ledger::Outcome;
use grid_batch_protocol::Message;
use serde_json::{Value, json};

use crate::{
    client::encode_request,
    test_server::{TestServer, batch, body, id, service},
};

fn path(number: u64) -> String {
    format!("/v1/batches/{}", id(&batch(number)))
}

/// Has the ledger refuse the first batch of a service.
fn reject_next(server: &TestServer, name: &str) {
    let taken = server.take_batch_of(service(name));
    let rejected = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    let receipt = Receipt {
        transaction_id: Some(batch(1).transactions[0].header_signature.parse().unwrap()),
        error_message: "not enough".to_owned(),
        error_data: vec![1, 2, 3],
    };
    let change = Change::new(taken.service_id.clone(), taken.batch_id, rejected);
    server.store.record(&[Change { receipts: vec![receipt], ..change }]).unwrap();
}

fn kinds(details: &Value) -> Vec<&str> {
    let history = details["history"].as_array().unwrap();
    history.iter().map(|entry| entry["kind"].as_str().unwrap()).collect()
}

#[test]
fn details_have_everything_that_is_stored() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)]));
    reject_next(&server, "global");
    let details = server.get(&path(1)).json();
    let transaction_id = &batch(1).transactions[0].header_signature;
    assert_eq!(details["state"], "invalid", "{details}");
    assert_eq!(details["transaction_ids"], json!([transaction_id]));
    let receipt =
        json!({ "transaction_id": transaction_id, "message": "not enough", "data": "AQID" });
    assert_eq!(details["receipts"], json!([receipt]));
    assert_eq!(details["last_error"], "not enough");
    assert_eq!(details["failed_attempts"][0]["outcome"], "rejected", "{details}");
    assert_eq!((&details["wait"], &details["commit_after_invalid"]), (&Value::Null, &Value::Null));
    assert_eq!(kinds(&details), ["accepted", "submitted", "answered", "status"]);
}

#[test]
fn open_batch_tells_why_it_waits() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1), batch(2)]));
    let wait = &server.get(&path(2)).json()["wait"];
    assert_eq!(wait["cause"], "behind", "{wait}");
    assert_eq!(wait["behind"]["batch_id"], id(&batch(1)).to_string(), "{wait}");
}

#[test]
fn history_has_events_and_what_operators_did() {
    let server = TestServer::with(|builder, store| {
        builder.with_events(store.clone()).with_operators(store.clone(), || None)
    });
    server.post("/batches?service_id=a::b", &body([batch(1)]));
    let headers = ["content-type: application/json"];
    let hold = server.client().request(
        "POST",
        &format!("{}/hold", path(1)),
        &headers,
        br#"{"reason": "look"}"#,
    );
    assert_eq!(hold.status, 200);
    let details = server.get(&path(1)).json();
    assert_eq!(kinds(&details), ["accepted", "held"], "{details}");
    assert_eq!(details["history"][1]["detail"], "look");
    assert_eq!(details["operator_actions"][0]["actor"], "local", "{details}");
}

#[test]
fn bytes_are_those_that_were_sent() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)]));
    let link = server.get(&path(1)).json()["links"]["bytes"].as_str().unwrap().to_owned();
    let response = server.get(link.strip_prefix("http://grid.test").unwrap());
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    assert_eq!(response.body, batch(1).encode_to_vec());
}

#[test]
fn batch_of_several_services_is_named_with_one() {
    let server = TestServer::new();
    for name in ["a::b", "c::d"] {
        server.post(&format!("/batches?service_id={name}"), &body([batch(1)]));
    }
    assert_eq!(server.get(&path(1)).error(), (400, 1009));
    let of_one = server.get(&format!("{}?service_id=c::d", path(1))).json();
    assert_eq!(of_one["service_id"], "c::d");
    assert_eq!(server.get(&format!("{}?service_id=e::f", path(1))).error(), (404, 1060));
}

#[test]
fn first_characters_name_a_batch() {
    let server = TestServer::new();
    for name in ["a::b", "c::d"] {
        server.post(&format!("/batches?service_id={name}"), &body([batch(1)]));
    }
    let (whole, short) = (path(1), &path(1)["/v1/batches/".len()..][..8]);
    let short = format!("/v1/batches/{short}");
    for part in ["", "/explain", "/bytes"] {
        assert_eq!(server.get(&format!("{short}{part}?service_id=c::d")).status, 200, "{part}");
        assert_eq!(server.get(&format!("{short}{part}")).error(), (400, 1009), "{part}");
        assert_eq!(server.get(&format!("/v1/batches/00000000{part}")).error(), (404, 1060));
    }
    let found = server.get(&format!("{short}?service_id=c::d")).json();
    assert_eq!(found["id"], whole["/v1/batches/".len()..]);
    assert_eq!(server.get(&short[..short.len() - 1]).error(), (400, 60));
}

#[test]
fn unknown_and_malformed_ids_are_refused() {
    let server = TestServer::new();
    for part in ["", "/bytes"] {
        assert_eq!(server.get(&format!("{}{part}", path(1))).error(), (404, 1060));
        assert_eq!(server.get(&format!("/v1/batches/xyz{part}")).error(), (400, 60));
        assert_eq!(server.get(&format!("{}{part}?x=1", path(1))).error(), (400, 1007));
    }
}

#[test]
fn request_waits_until_the_batch_has_ended() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)]));
    let mut waiting = server.client();
    waiting.send(encode_request("GET", &format!("{}?wait=20", path(1)), &[], b""));
    reject_next(&server, "global");
    assert_eq!(waiting.receive().json()["state"], "invalid");
    assert_eq!(server.get(&format!("{}?wait=20", path(1))).json()["state"], "invalid");
}

#[test]
fn wait_ends_without_the_batch() {
    let server = TestServer::new();
    server.post("/batches", &body([batch(1)]));
    assert_eq!(server.get(&format!("{}?wait=1", path(1))).json()["state"], "new");
}
