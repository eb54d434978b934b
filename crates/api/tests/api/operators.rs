//! What operators do over HTTP, and the log of it.

use std::sync::Arc;

use grid_batch_core::batches::{BatchState, Stale};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::queries::BatchQueryStore;
use serde_json::{Value, json};

use crate::{
    client::Response,
    test_server::{TestServer, batch, body, id, service},
};

fn server() -> TestServer {
    TestServer::with(|builder, store| {
        builder.with_operators(Arc::clone(store) as _, || Some(InstanceId::new("one")))
    })
}

/// A server with this many batches of one service.
fn server_with(batches: u64) -> TestServer {
    let server = server();
    server.post("/batches", &body((1..=batches).map(batch))).link();
    server
}

fn act(server: &TestServer, number: u64, verb: &str, fields: Value) -> Response {
    let path = format!("/v1/batches/{}/{verb}", id(&batch(number)));
    post(server, &path, fields)
}

fn post(server: &TestServer, path: &str, mut fields: Value) -> Response {
    if fields.get("reason").is_none() {
        fields["reason"] = "because".into();
    }
    let headers = ["content-type: application/json"];
    server.client().request("POST", path, &headers, fields.to_string().as_bytes())
}

fn state(server: &TestServer, number: u64) -> BatchState {
    server.store.find(&id(&batch(number))).unwrap()[0].progress.state
}

fn log(server: &TestServer, query: &str) -> Vec<Value> {
    let response = server.get(&format!("/v1/operator-actions{query}"));
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    response.json()["data"].as_array().unwrap().clone()
}

#[test]
fn action_says_what_it_changed_and_is_logged() {
    let server = server_with(2);
    let response = act(&server, 1, "hold", json!({"reason": "look first"}));
    assert_eq!(response.status, 200);
    let answer = response.json();
    assert_eq!(answer["changed"], json!({"from": "new", "to": "new, held"}));
    assert_eq!((&answer["verb"], &answer["dry_run"]), (&json!("hold"), &json!(false)));
    assert!(server.store.find(&id(&batch(1))).unwrap()[0].held.is_some());

    let logged = log(&server, "");
    assert_eq!(logged.len(), 1);
    for (field, value) in [
        ("actor", "local"),
        ("source", "http"),
        ("instance", "one"),
        ("verb", "hold"),
        ("target", "batch"),
        ("service_id", "global"),
        ("reason", "look first"),
        ("batch_id", &id(&batch(1)).to_string()),
    ] {
        assert_eq!(logged[0][field], value, "{field}");
    }
}

#[test]
fn dry_run_over_http_changes_nothing() {
    let server = server_with(1);
    let answer = act(&server, 1, "cancel", json!({"dry_run": true})).json();
    assert_eq!(answer["changed"], json!({"from": "new", "to": "invalid"}));
    assert_eq!(state(&server, 1), BatchState::New);
    assert!(log(&server, "").is_empty());
    assert_eq!(act(&server, 1, "cancel", json!({})).status, 200);
    assert_eq!(state(&server, 1), BatchState::Invalid);
}

#[test]
fn action_that_the_state_forbids_is_refused() {
    let server = server_with(1);
    for (verb, fields, words) in [
        ("release", json!({}), "not held"),
        ("retry", json!({}), "not delayed"),
        ("resubmit", json!({"attempt": 0}), "not at the ledger"),
        ("resubmit", json!({"attempt": 3}), "attempt 3"),
        ("end", json!({"as": "committed", "attempt": 1}), "attempt 1"),
        ("continue", json!({}), "stops nothing"),
        ("end-following", json!({}), "stops nothing"),
    ] {
        let response = act(&server, 1, verb, fields);
        assert_eq!(response.error(), (409, 1070), "{verb}");
        assert!(response.message().contains(words), "{verb}: {}", response.message());
    }
    server.take_batch_of(service("global"));
    let response = act(&server, 1, "cancel", json!({}));
    assert_eq!(response.error(), (409, 1070));
    assert_eq!(response.message(), Stale::WithSubmitter.to_string());
    assert!(log(&server, "").is_empty());
}

#[test]
fn wrong_request_of_an_operator_is_refused() {
    let server = server_with(1);
    for (verb, fields) in [
        ("hold", json!({"reason": " "})),
        ("hold", json!({"reason": "x".repeat(1_001)})),
        ("hold", json!({"dry_run": "yes"})),
        ("resubmit", json!({})),
        ("end", json!({"attempt": 0})),
        ("end", json!({"attempt": 0, "as": "pending"})),
        ("end", json!({"attempt": -1, "as": "invalid"})),
    ] {
        assert_eq!(act(&server, 1, verb, fields.clone()).error(), (400, 1023), "{verb} {fields}");
    }
    assert_eq!(act(&server, 1, "hold", json!({"attempt": 1})).error(), (400, 1022));
    assert_eq!(act(&server, 7, "hold", json!({})).error(), (404, 1071));
    let short = format!("/v1/batches/{:.8}/hold", id(&batch(1)));
    assert_eq!(post(&server, &short, json!({"dry_run": true})).status, 200);
    assert_eq!(post(&server, "/v1/batches/xy/hold", json!({})).error(), (400, 60));
    let headers = ["content-type: application/json"];
    let path = format!("/v1/batches/{}/hold", id(&batch(1)));
    let missing = server.client().request("POST", &path, &headers, b"{}");
    assert_eq!(missing.error(), (400, 1023));
    let of_other = act(&server, 1, "hold?service_id=a::b", json!({}));
    assert_eq!(of_other.error(), (404, 1071));
    assert_eq!(server.get("/v1/operator-actions?verb=explode").error(), (400, 1023));
    assert_eq!(server.get("/v1/operator-actions?limit=0").error(), (400, 1023));
    assert_eq!(server.get("/v1/operator-actions?x=1").error(), (400, 1007));
}

#[test]
fn decision_over_http_ends_a_batch() {
    let server = server_with(2);
    let fields = json!({"as": "committed", "attempt": 0});
    assert_eq!(act(&server, 1, "end", fields).status, 200);
    assert_eq!(act(&server, 2, "end", json!({"as": "invalid", "attempt": 0})).status, 200);
    assert_eq!(state(&server, 1), BatchState::Committed);
    assert_eq!(state(&server, 2), BatchState::Invalid);
    assert_eq!(log(&server, "?verb=end_committed").len(), 1);
}

#[test]
fn name_that_a_client_gives_itself_is_marked() {
    let server = server_with(1);
    let path = format!("/v1/batches/{}/hold", id(&batch(1)));
    let headers = ["content-type: application/json", "grid-batch-actor: alice"];
    let reason = br#"{"reason": "x"}"#;
    assert_eq!(server.client().request("POST", &path, &headers, reason).status, 200);
    assert_eq!(log(&server, "?actor=local/alice").len(), 1);
    assert!(log(&server, "?actor=alice").is_empty());
}

#[test]
fn log_of_actions_is_read_in_pages() {
    let server = server_with(3);
    for number in 1..=3 {
        assert_eq!(act(&server, number, "hold", json!({})).status, 200);
    }
    let page = server.get("/v1/operator-actions?limit=2").json();
    assert_eq!(page["data"].as_array().unwrap().len(), 2);
    let next = page["next"].as_str().unwrap();
    let page = server.get(&format!("/v1/operator-actions?limit=2&after={next}")).json();
    assert_eq!(page["data"][0]["batch_id"], id(&batch(1)).to_string());
    assert_eq!(page["next"], Value::Null);
}

#[test]
fn filter_selects_what_is_acted_on() {
    let server = server_with(3);
    assert_eq!(act(&server, 1, "hold", json!({})).status, 200);
    let many = |fields| post(&server, "/v1/batches/actions", fields);
    let cancel = |dry_run, limit| {
        let filter = json!({"service_id": "global", "state": "new"});
        let fields =
            json!({"verb": "cancel", "filter": filter, "dry_run": dry_run, "limit": limit});
        let answer = many(fields).json();
        let count = answer["data"].as_array().unwrap().len();
        (count, answer["next"].is_string())
    };
    assert_eq!(cancel(true, 10), (3, false));
    assert_eq!(cancel(true, 2), (2, true));
    let held = json!({"verb": "release", "filter": {"held": true}});
    let released = many(held).json();
    assert_eq!(released["data"][0]["batch_id"], id(&batch(1)).to_string());
    let again = json!({"verb": "release", "filter": {"service_id": "global"}});
    let refused = many(again).json();
    assert_eq!(refused["data"], json!([]));
    assert_eq!(refused["refused"].as_array().unwrap().len(), 3);
    assert_eq!(cancel(false, 2), (2, true));
    assert_eq!(cancel(false, 2), (1, false));
    assert_eq!(log(&server, "?verb=cancel").len(), 3);
    for (fields, error) in [
        (json!({"verb": "cancel", "filter": {}}), (400, 1023)),
        (json!({"verb": "cancel"}), (400, 1023)),
        (json!({"verb": "pause", "filter": {"held": true}}), (400, 1023)),
        (json!({"verb": "cancel", "filter": {"state": "committed"}}), (400, 1023)),
        (json!({"verb": "cancel", "filter": {"age": 1}}), (400, 1022)),
        (json!({"verb": "cancel", "filter": {"held": true}, "limit": 1_001}), (400, 1023)),
    ] {
        assert_eq!(many(fields.clone()).error(), error, "{fields}");
    }
}

/// It is evidence about attempts that the operator has looked at.
#[test]
fn decision_about_many_names_each_attempt() {
    let server = server_with(1);
    let filter = json!({"verb": "end_committed", "filter": {"service_id": "global"}});
    let many = |fields| post(&server, "/v1/batches/actions", fields);
    assert_eq!(many(filter.clone()).error(), (400, 1023));
    let mut dry_run = filter;
    dry_run["dry_run"] = true.into();
    let looked = many(dry_run).json()["data"][0].clone();
    let named = |attempt: u64| {
        let batch = json!({
            "service_id": looked["service_id"], "batch_id": looked["batch_id"], "attempt": attempt,
        });
        json!({"verb": "end_committed", "batches": [batch]})
    };
    let attempt = looked["attempt"].as_u64().unwrap();
    let later = many(named(attempt + 1)).json();
    assert_eq!((&later["data"], later["refused"].as_array().unwrap().len()), (&json!([]), 1));
    let done = many(named(attempt)).json();
    assert_eq!(done["data"][0]["changed"]["to"], "committed");
}

#[test]
fn batches_are_named_or_selected() {
    let server = server_with(1);
    let named = json!([{"service_id": "global", "batch_id": id(&batch(1)).to_string()}]);
    let many = |fields| post(&server, "/v1/batches/actions", fields);
    for more in [json!({"filter": {"held": true}}), json!({"limit": 5})] {
        let mut fields = json!({"verb": "hold", "batches": named});
        fields.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        assert_eq!(many(fields).error(), (400, 1023), "{more}");
    }
    let too_many = vec![named[0].clone(); 1_001];
    assert_eq!(many(json!({"verb": "hold", "batches": too_many})).error(), (400, 1023));
    assert_eq!(many(json!({"verb": "hold", "batches": [{"age": 1}]})).error(), (400, 1022));
    let done = many(json!({"verb": "hold", "batches": named})).json();
    assert_eq!(done["data"].as_array().unwrap().len(), 1);
}

#[test]
fn paused_service_submits_nothing_and_says_why() {
    let server = server_with(2);
    let waits = || {
        let status = server.get_status(&id(&batch(1))).json();
        status["data"][0]["progress"]["wait"]["cause"].as_str().map(str::to_owned)
    };
    for (pause, resume) in
        [("/v1/services/global/pause", "/v1/services/global/resume"), ("/v1/pause", "/v1/resume")]
    {
        assert_eq!(post(&server, resume, json!({})).error(), (409, 1070));
        assert_eq!(post(&server, pause, json!({"dry_run": true})).status, 200);
        assert_eq!(waits().as_deref(), Some("submission"));
        let paused = post(&server, pause, json!({})).json();
        assert_eq!(paused["changed"], json!({"from": "running", "to": "paused"}));
        assert_eq!(post(&server, pause, json!({})).error(), (409, 1070));
        assert_eq!(waits().as_deref(), Some("paused"));
        assert_eq!(post(&server, resume, json!({})).status, 200);
        assert_eq!(waits().as_deref(), Some("submission"));
    }
    assert_eq!(post(&server, "/v1/services/other/pause", json!({})).error(), (404, 1071));
    assert_eq!(log(&server, "?service_id=global").len(), 2);
    assert_eq!(log(&server, "").len(), 4);
}

#[test]
fn instance_that_does_not_run_is_not_drained() {
    let server = server();
    for (instance, error) in [("nowhere", (404, 1071)), ("a%00b", (404, 1071))] {
        let path = format!("/v1/instances/{instance}/drain");
        assert_eq!(post(&server, &path, json!({})).error(), error, "{instance}");
    }
    for path in ["/v1/operator-actions?actor=a%00b", "/v1/claims?instance_id=a%00b"] {
        assert_eq!(server.get(path).error(), (400, 1023), "{path}");
    }
}

#[test]
fn claim_that_no_instance_has_is_not_released() {
    let server = server_with(1);
    let path = "/v1/claims/global/release";
    assert_eq!(post(&server, path, json!({})).error(), (409, 1070));
    server.take_batch_of(service("global"));
    let response = post(&server, path, json!({}));
    assert_eq!(response.error(), (409, 1070));
    assert!(response.message().contains("being sent"), "{}", response.message());
    assert_eq!(post(&server, "/v1/claims/other/release", json!({})).error(), (404, 1071));
}
