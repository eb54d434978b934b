//! `/v1/services`, `/v1/claims` and `/v1/ledgers`.

use grid_batch_api::{LedgerReport, NodeReport};
use grid_batch_core::BatchError;
use serde_json::{Value, json};

use crate::test_server::{TestServer, batch, body, service};

fn server(services: &[&str]) -> TestServer {
    let server = TestServer::new();
    for (number, name) in (1..).zip(services) {
        server.post(&format!("/batches?service_id={name}"), &body([batch(number)]));
    }
    server
}

fn ids(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().unwrap();
    data.iter().map(|service| service["service_id"].as_str().unwrap()).collect()
}

#[test]
fn services_are_listed_in_pages() {
    let server = server(&["c", "a::b", "d"]);
    let first = server.get("/v1/services?limit=2").json();
    assert_eq!((ids(&first), first["next"].as_str()), (vec!["a::b", "c"], Some("c")));
    let last = server.get("/v1/services?limit=2&after=c").json();
    assert_eq!((ids(&last), &last["next"]), (vec!["d"], &Value::Null));
    let link = first["data"][0]["link"].as_str().unwrap().to_owned();
    let one = server.get(link.strip_prefix("http://grid.test").unwrap()).json();
    assert_eq!(one["service_id"], "a::b");
}

#[test]
fn service_has_its_counts_its_strategy_and_its_owner() {
    let server = server(&["a::b"]);
    server.take_batch_of(service("a::b"));
    let service = server.get("/v1/services/a%3A%3Ab").json();
    for (name, expected) in [
        ("open", json!(1)),
        ("under_way", json!(1)),
        ("held", json!(0)),
        ("halts", json!(0)),
        ("failing", Value::Null),
        ("paused", Value::Null),
        ("strategy", json!("serial")),
        ("lanes", json!(1)),
    ] {
        assert_eq!(service[name], expected, "{name} of {service}");
    }
    assert!(service["oldest_age_seconds"].as_f64().unwrap() >= 0.0, "{service}");
    assert!(service["owner"]["instance_id"].as_str().unwrap().len() >= 32, "{service}");
}

#[test]
fn claims_have_instances_and_services() {
    let server = server(&["a::b", "c::d"]);
    server.take_batch_of(service("c::d"));
    let claims = server.get("/v1/claims").json();
    let instance = claims["instances"][0]["instance_id"].as_str().unwrap();
    let owned = server.get(&format!("/v1/claims?instance_id={instance}")).json();
    assert_eq!(ids(&owned), ["c::d"]);
    assert_eq!(owned["data"][0]["instance_id"], instance);
    assert_eq!(owned["next"], Value::Null);
    assert_eq!(claims["instances"][0]["lease_is_over"], false);
}

#[test]
fn wrong_parameters_are_refused() {
    let server = TestServer::new();
    for (path, error) in [
        ("/v1/services?idle=maybe", (400, 1023)),
        ("/v1/services?after=", (400, 1023)),
        ("/v1/services?state=new", (400, 1007)),
        ("/v1/services/%20", (400, 1008)),
        ("/v1/services/never::seen", (404, 1062)),
        ("/v1/claims?limit=x", (400, 1023)),
        ("/v1/ledgers?limit=1", (400, 1007)),
    ] {
        assert_eq!(server.get(path).error(), error, "{path}");
    }
}

#[test]
fn ledgers_are_shown_with_their_nodes() {
    let report = || LedgerReport {
        kind: "sawtooth".to_owned(),
        id: "block 0".to_owned(),
        name: String::new(),
        recorded: true,
        problem: None,
        nodes: vec![NodeReport {
            url: "http://node:8008".to_owned(),
            confirmed: true,
            unanswered_seconds: Some(12.0),
            answering: false,
            problem: Some("refused".to_owned()),
            problem_since: Some("2026-11-21T09:30:00.000000Z".to_owned()),
            asked_seconds_ago: Some(2.0),
            failed_connections: 3,
        }],
    };
    let server = TestServer::with(|builder, _| builder.with_ledgers(move || Ok(vec![report()])));
    let expected = json!({
        "data": [{
            "kind": "sawtooth", "id": "block 0", "name": "", "recorded": true, "problem": null,
            "nodes": [{
                "url": "http://node:8008", "confirmed": true, "unanswered_seconds": 12.0, "answering": false,
                "problem": "refused", "problem_since": "2026-11-21T09:30:00.000000Z", "asked_seconds_ago": 2.0,
                "failed_connections": 3,
            }],
        }],
        "next": null,
    });
    assert_eq!(server.get("/v1/ledgers").json(), expected);
    let failed = || Err(BatchError::Unavailable("no connection".to_owned()));
    let server = TestServer::with(|builder, _| builder.with_ledgers(failed));
    assert_eq!(server.get("/v1/ledgers").error(), (503, 1013));
}
