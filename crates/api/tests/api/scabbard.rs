//! Scabbard's interface to batches.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use grid_batch_core::batches::{Event, LedgerStatus, Receipt};
use grid_batch_core::ledger::{ForwardedRequest, Outcome, PassThroughError};
use grid_batch_core::mocks::MockLedger;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{BatchError, ItemId};
use grid_batch_protocol::{Batch, TransactFormat};
use serde_json::{Value, json};

use crate::{
    client::Response,
    pass_through::answer,
    statuses::{attempt, record},
    test_server::{TestServer, batch, body, id},
};

const BATCHES: &str = "/scabbard/a/b/batches";
const STATUSES: &str = "/scabbard/a/b/batch_statuses";
/// What clients of Splinter send.
const TOKEN: &str = "authorization: Bearer Cylinder:a.b.c";

fn submit(server: &TestServer, list: &[u8]) -> Response {
    server.client().request("POST", BATCHES, &[TOKEN], list)
}

fn submitted(server: &TestServer, batch: &Batch) -> ItemId {
    assert_eq!(submit(server, &body([batch.clone()])).status, 202);
    id(batch)
}

fn statuses(server: &TestServer, query: &str) -> Response {
    server.client().request("GET", &format!("{STATUSES}?{query}"), &[TOKEN], b"")
}

/// Status and body of an error.
fn error(response: &Response) -> (u16, Value) {
    (response.status, response.json())
}

/// A server with a node that says this about statuses.
fn server_with_node(
    reply: impl Fn(ForwardedRequest) -> Result<(u16, String), PassThroughError> + Send + Sync + 'static,
) -> TestServer {
    let mut node = MockLedger::new();
    node.expect_serves().returning(|is_post, path| !is_post && path == STATUSES);
    node.expect_forward().returning(move |request| answer(reply(request)));
    TestServer::with(|builder, _| builder.with_pass_through(Arc::new(node)))
}

#[test]
fn accepted_batches_are_stored_and_linked_by_a_path() {
    let server = TestServer::new();
    let [one, two] = [1, 2].map(batch);
    let link = submit(&server, &body([one.clone(), two.clone()])).link();
    assert_eq!(link, format!("{STATUSES}?ids={},{}", id(&one), id(&two)));
    let stored = server.store.find(&id(&one)).unwrap();
    assert_eq!(stored[0].service_id.as_str(), "a::b");
}

#[test]
fn statuses_are_those_of_scabbard() {
    let server = TestServer::new();
    let [committed, invalid, valid, pending] = [1, 2, 3, 4].map(|n| submitted(&server, &batch(n)));
    attempt(&server, Outcome::Accepted);
    record(&server, committed, Event::status(LedgerStatus::Committed), &[]);
    attempt(&server, Outcome::Accepted);
    let transaction = ItemId::from_bytes([5; 64]);
    let receipt = |transaction_id, data: &[u8]| Receipt {
        transaction_id,
        error_message: "no such key".to_owned(),
        error_data: data.to_vec(),
    };
    let receipts = [receipt(Some(transaction), &[0, 255]), receipt(None, &[])];
    record(&server, invalid, Event::status(LedgerStatus::Invalid), &receipts);
    attempt(&server, Outcome::Accepted);
    record(&server, valid, Event::status(LedgerStatus::Valid), &[]);

    let unknown = ItemId::from_bytes([9; 64]).to_string();
    let ids = [committed, invalid, valid, pending].map(|id| id.to_string());
    let response = statuses(&server, &format!("ids={},zz,{unknown}", ids.join(",")));
    assert_eq!(response.status, 200);
    let json = response.json();
    let status_of = |id: &str| {
        let found = json.as_array().unwrap().iter().find(|status| status["id"] == id).unwrap();
        let time = &found["timestamp"];
        assert!(time["secs_since_epoch"].is_u64() && time["nanos_since_epoch"].is_u64(), "{time}");
        assert_eq!(found.as_object().unwrap().len(), 3);
        found["status"].clone()
    };
    let transaction_of = |number| batch(number).transactions[0].header_signature.clone();
    let applied = |status, number| json!({ "statusType": status, "message": [{ "transaction_id": transaction_of(number) }] });
    assert_eq!(status_of(&ids[0]), applied("Committed", 1));
    assert_eq!(status_of(&ids[2]), applied("Valid", 3));
    let reason = |id: String, data: Value| json!({ "transaction_id": id, "error_message": "no such key", "error_data": data });
    let reasons =
        [reason(transaction.to_string(), json!([0, 255])), reason(transaction_of(2), json!([]))];
    assert_eq!(status_of(&ids[1]), json!({ "statusType": "Invalid", "message": reasons }));
    assert_eq!(status_of(&ids[3]), json!({ "statusType": "Pending" }));
    for id in ["zz", &unknown] {
        assert_eq!(status_of(id), json!({ "statusType": "Unknown" }));
    }
}

#[test]
fn errors_have_the_form_of_scabbard() {
    let server = TestServer::new();
    let (status, json) = error(&submit(&server, b"garbage!!"));
    assert_eq!((status, &json["code"]), (400, &json!("400")));
    assert!(json["message"].is_string());
    assert_eq!(submit(&server, b"").status, 400);
    let list = body([batch(1)]);
    let without_token = server.client().request("POST", BATCHES, &[], &list);
    assert_eq!(error(&without_token).1["code"], "401");
    let octets = "content-type: application/octet-stream";
    assert_eq!(server.client().request("POST", BATCHES, &[octets], &list).status, 202);
    let missing = json!({ "code": "400", "message": "No batch IDs specified" });
    assert_eq!(error(&server.get(STATUSES)), (400, missing));
    let newer = [TOKEN, "SplinterProtocolVersion: 2"];
    let newer = server.client().request("POST", BATCHES, &newer, &list);
    assert_eq!(newer.status, 400);
    assert!(newer.json()["message"].as_str().unwrap().contains("2 > 1"));
    assert_eq!(server.get("/scabbard/a/b/other").json()["code"], "404");
    assert_eq!(server.get(BATCHES).status, 405);
}

#[test]
fn service_that_is_not_served_is_not_found() {
    let server = TestServer::with(|builder, _| {
        builder.with_service_rule(|id| match id.as_str() {
            "a::b" => Ok(()),
            _ => Err("other".to_owned()),
        })
    });
    let message = "scabbard service gsZZ on circuit c not found";
    let expected = (404, json!({ "code": "404", "message": message }));
    let post =
        server.client().request("POST", "/scabbard/c/gsZZ/batches", &[TOKEN], &body([batch(1)]));
    assert_eq!(error(&post), expected);
    assert_eq!(error(&server.get("/scabbard/c/gsZZ/batch_statuses?ids=zz")), expected);
}

#[test]
fn wait_ends_with_the_batch() {
    let server = TestServer::new();
    let id = submitted(&server, &batch(1));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| statuses(&server, &format!("ids={id}&wait=20")).json());
        attempt(&server, Outcome::Accepted);
        record(&server, id, Event::status(LedgerStatus::Committed), &[]);
        assert_eq!(waiting.join().unwrap()[0]["status"]["statusType"], "Committed");
    });
    let started = Instant::now();
    let pending = submitted(&server, &batch(2));
    for wait in ["0", "false"] {
        statuses(&server, &format!("ids={pending}&wait={wait}"));
    }
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn node_reports_batches_that_are_not_stored() {
    let other = ItemId::from_bytes([7; 64]);
    let report = json!({
        "id": other.to_string(), "status": { "statusType": "Committed", "message": [] },
        "timestamp": { "secs_since_epoch": 1, "nanos_since_epoch": 0 },
    });
    let reported = report.clone();
    let server = server_with_node(move |request| {
        // Neither what is stored nor what is no id.
        assert_eq!(request.query, Some(format!("ids={other}")));
        Ok((200, json!([reported]).to_string()))
    });
    let stored = submitted(&server, &batch(1));
    let json = statuses(&server, &format!("ids={stored},{other},zz")).json();
    assert!(json.as_array().unwrap().contains(&report), "{json}");
    assert_eq!(json.as_array().unwrap().len(), 3);
}

#[test]
fn without_an_answer_of_the_node_a_batch_is_unknown() {
    let other = ItemId::from_bytes([7; 64]);
    for reply in
        [Err(PassThroughError::NoNode), Ok((500, "x".to_owned())), Ok((200, "x".to_owned()))]
    {
        let server = server_with_node(move |_| reply.clone());
        let json = statuses(&server, &format!("ids={other}")).json();
        assert_eq!(json[0]["status"]["statusType"], "Unknown");
    }
    let server = server_with_node(|_| Ok((404, "{}".to_owned())));
    assert_eq!(statuses(&server, &format!("ids={other}")).status, 404);
    let stored = submitted(&server, &batch(1));
    assert_eq!(statuses(&server, &format!("ids={other},{stored}")).status, 200);
}

#[test]
fn failed_read_is_reported() {
    use grid_batch_api::ApiBuilder;
    use grid_batch_core::mocks::{MockBatchQueryStore, MockIntakeStore};

    let mut store = MockBatchQueryStore::new();
    store.expect_find().returning(|_| Err(BatchError::Unavailable("secret".to_owned())));
    let builder = ApiBuilder::new(Arc::new(MockIntakeStore::new()), Arc::new(store))
        .with_format(Arc::new(TransactFormat::default()))
        .with_allowed_hosts(crate::test_server::test_hosts());
    let (_api, address) = crate::test_server::serve(builder);
    let path = format!("{STATUSES}?ids={}", id(&batch(1)));
    let response = crate::client::Client::connect(address).request("GET", &path, &[], b"");
    assert_eq!((response.status, response.json()["code"].clone()), (503, json!("503")));
}
