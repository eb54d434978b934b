//! Why batches and services wait.

use std::collections::HashMap;

use grid_batch_core::batches::{Change, Event};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queries::{ServicePause, WaitReason};
use grid_batch_core::{ServiceId, Timestamp};
use serde_json::{Value, json};

use crate::test_server::{TestServer, batch, body, id, service};

fn post(server: &TestServer, name: &str, numbers: &[u64]) {
    let list = body(numbers.iter().map(|number| batch(*number)));
    assert_eq!(server.post(&format!("/batches?service_id={name}"), &list).status, 202);
}

fn explain(server: &TestServer, number: u64) -> Value {
    server.get(&format!("/v1/batches/{}/explain", id(&batch(number)))).json()
}

/// Has the ledger refuse the next batch of `a::b` for now.
fn delay_next(server: &TestServer) {
    let taken = server.take_batch_of(service("a::b"));
    let busy = Event::Outcome { attempt: 1, outcome: Outcome::Busy };
    let change = Change::new(taken.service_id.clone(), taken.batch_id, busy);
    let (error, retry_at) = (Some("503: too busy".to_owned()), Some(Timestamp::from_micros(7)));
    server.store.record(&[Change { error, retry_at, ..change }]).unwrap();
}

fn verbs(explanation: &Value) -> Vec<&str> {
    let actions = explanation["actions"].as_array().unwrap();
    actions.iter().map(|it| it["verb"].as_str().unwrap()).collect()
}

#[test]
fn waiting_batch_names_the_one_before_and_what_can_be_done() {
    let server = TestServer::new();
    post(&server, "a::b", &[1, 2, 3]);
    delay_next(&server);
    let explanation = explain(&server, 3);
    let text = explanation["text"].as_str().unwrap();
    assert!(text.starts_with("The batch waits for 2 earlier batches of its service;"), "{text}");
    assert!(text.contains("too busy"), "{text}");
    assert_eq!(explanation["position"]["ahead"], 2);
    let blocker = &explanation["blocker"];
    assert_eq!(blocker["id"], id(&batch(1)).to_string());
    assert_eq!((&blocker["state"], &blocker["attempts"]), (&"delayed".into(), &1.into()));
    assert_eq!(blocker["next_try_at"], "1970-01-01T00:00:00.000007Z");
    assert_eq!(verbs(&explanation), ["cancel", "retry", "cancel"]);
    assert_eq!(explanation["actions"][1]["batch_id"], id(&batch(1)).to_string());
    let owner = &explanation["service"]["owner"];
    assert!(owner["epoch"].as_u64().unwrap() > 0, "{owner}");
    assert_eq!(owner["lease_is_over"], false);
    assert_eq!(explanation["wait"]["cause"], "behind");
}

#[test]
fn ended_batch_waits_for_nothing() {
    let server = TestServer::new();
    post(&server, "a::b", &[1]);
    let taken = server.take_batch_of(service("a::b"));
    let rejected = Event::Outcome { attempt: 1, outcome: Outcome::Rejected };
    server.store.record(&[Change::new(service("a::b"), taken.batch_id, rejected)]).unwrap();
    let explanation = explain(&server, 1);
    let text = explanation["text"].as_str().unwrap();
    assert!(text.starts_with("The batch has ended: it is invalid"), "{text}");
    assert_eq!((&explanation["wait"], &explanation["position"]), (&Value::Null, &Value::Null));
    assert_eq!(verbs(&explanation), [] as [&str; 0]);
}

#[test]
fn service_is_explained_by_its_oldest_batch() {
    let server = TestServer::new();
    post(&server, "a::b", &[1, 2]);
    delay_next(&server);
    let explanation = server.get("/v1/services/a%3A%3Ab/explain").json();
    let text = explanation["text"].as_str().unwrap();
    assert!(
        text.starts_with("The service a::b has 2 open batches; 0 under way. The oldest"),
        "{text}"
    );
    assert_eq!(explanation["oldest"]["id"], id(&batch(1)).to_string());
    assert_eq!(explanation["oldest"]["wait"]["cause"], "delayed");
    assert_eq!(verbs(&explanation), ["retry", "cancel"]);
    assert_eq!(explanation["service"]["failing"], "503: too busy");
}

#[test]
fn pause_of_a_service_is_told() {
    let pauses = |services: &[ServiceId]| {
        let pause = ServicePause {
            since: Timestamp::from_micros(5),
            reason: "maintenance".to_owned(),
            operator: Some("ann".to_owned()),
            of_all: false,
            states_differ: false,
        };
        let paused = services.iter().filter(|service| service.as_str() == "a::b");
        Ok(paused.map(|service| (service.clone(), pause.clone())).collect::<HashMap<_, _>>())
    };
    let server = TestServer::with(|builder, _| builder.with_pauses(pauses));
    post(&server, "a::b", &[1]);
    post(&server, "c::d", &[2]);
    let paused = explain(&server, 1);
    let text = paused["text"].as_str().unwrap();
    assert!(text.ends_with(" since 1970-01-01T00:00:00Z by ann: maintenance."), "{text}");
    assert_eq!(verbs(&paused), ["cancel", "resume"]);
    let resume = paused["actions"].as_array().unwrap().last().unwrap();
    assert_eq!(resume["command"], "grid-batch resume a::b --reason TEXT");
    assert_eq!(paused["service"]["paused"]["reason"], "maintenance");
    assert_eq!(paused["service"]["paused"]["operator"], "ann");
    assert_eq!(explain(&server, 2)["service"]["paused"], Value::Null);
    let services = server.get("/v1/services").json();
    assert_eq!(services["data"][0]["paused"]["since"], "1970-01-01T00:00:00.000005Z");
}

#[test]
fn reasons_that_only_the_process_knows_are_told() {
    let waits = |service: &ServiceId| match service.as_str() {
        "a::b" => {
            let since = Timestamp::from_micros(5);
            vec![WaitReason::InFlightWindow, WaitReason::Lock { since }]
        }
        _ => Vec::new(),
    };
    let server = TestServer::with(|builder, _| builder.with_known_waits(waits));
    post(&server, "a::b", &[1, 2]);
    post(&server, "c::d", &[3]);
    let status = |number| {
        server.get_status(&id(&batch(number))).json()["data"][0]["progress"]["wait"].clone()
    };
    let lock = json!({
        "cause": "lock",
        "text": "Another transaction of the database keeps rows of its service locked",
        "since": "1970-01-01T00:00:00.000005Z",
        "ends": "the end of that transaction",
    });
    let lease = json!({
        "cause": "lease",
        "text": "No server works on its service: no running instance has claimed it",
        "since": null,
        "ends": "an instance that claims the service, or renews its lease",
    });
    assert_eq!(
        (&status(1)["cause"], &status(1)["behind"]),
        (&json!("in_flight_window"), &json!(null))
    );
    assert_eq!((&status(2)["cause"], &status(2)["also"]), (&json!("behind"), &json!(null)));
    assert_eq!((&status(3)["cause"], &status(3)["also"]), (&json!("submission"), &json!(null)));
    let explained = explain(&server, 1);
    assert_eq!(explained["wait"]["also"], json!([lease, lock]));
    let text = explained["text"].as_str().unwrap();
    assert!(text.ends_with("keeps rows of its service locked."), "{text}");
    assert_eq!(explained["outages"], json!([]));
    let services = server.get("/v1/services").json();
    assert_eq!(services["data"][0]["waits"], json!([lease, lock]));

    delay_next(&server);
    assert_eq!((&status(1)["cause"], &status(1)["also"]), (&json!("delayed"), &json!([lock])));
}

#[test]
fn batch_that_the_ledger_does_not_report_says_so_itself() {
    let unconfirmed = |number| WaitReason::Unconfirmed {
        batch_id: id(&batch(number)),
        since: Timestamp::from_micros(5),
    };
    let waits = move |service: &ServiceId| match service.as_str() {
        "a::b" => vec![unconfirmed(1), unconfirmed(9)],
        _ => vec![WaitReason::NodePlace],
    };
    let server = TestServer::with(|builder, _| builder.with_known_waits(waits));
    post(&server, "a::b", &[1, 2]);
    post(&server, "c::d", &[3]);
    let taken = server.take_batch_of(service("a::b"));
    let accepted = Event::Outcome { attempt: 1, outcome: Outcome::Accepted };
    server.store.record(&[Change::new(service("a::b"), taken.batch_id, accepted)]).unwrap();
    let status = |number| {
        server.get_status(&id(&batch(number))).json()["data"][0]["progress"]["wait"].clone()
    };
    let causes = |also: &Value| -> Vec<String> {
        let also = also.as_array().map_or(&[][..], Vec::as_slice);
        also.iter().map(|it| it["cause"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(status(1)["cause"], "status");
    assert_eq!(causes(&status(1)["also"]), ["unconfirmed"]);
    assert_eq!(causes(&explain(&server, 1)["wait"]["also"]), ["unconfirmed"]);
    assert_eq!(causes(&explain(&server, 2)["wait"]["also"]), ["unconfirmed"]);
    let services = server.get("/v1/services").json();
    assert_eq!(services["data"][0]["waits"], json!([]));
    assert_eq!((&status(3)["cause"], &status(3)["behind"]), (&json!("node_place"), &json!(null)));
}

#[test]
fn unknown_batches_and_services_are_refused() {
    let server = TestServer::new();
    let path = format!("/v1/batches/{}/explain", id(&batch(1)));
    assert_eq!(server.get(&path).error(), (404, 1060));
    assert_eq!(server.get("/v1/services/a::b/explain").error(), (404, 1062));
    assert_eq!(server.get(&format!("{path}?x=1")).error(), (400, 1007));
}
