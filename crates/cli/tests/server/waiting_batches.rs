//! What `/batch_statuses` says about batches that wait, and why.

use grid_batch_core::ItemId;
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send},
    wait::{wait_for, wait_until},
};
use serde_json::{Value, json};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// A ledger that keeps a batch pending is given up soon, and one that drops it is not noticed.
const SHORT_LIMITS: &[(&str, &str)] = &[
    ("--poll-give-up-after", "2s"),
    ("--ledger-late-arrival-limit", "1h"),
    ("--services-strategy", "serial"),
];

/// The `progress` of a batch, as a client reads it.
fn progress(server: &BatchServer, id: &ItemId) -> Value {
    let path = format!("/batch_statuses?id={id}");
    let response = send(server.address, &request("GET", &path, &[], b"")).unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    let status = response.json()["data"][0].clone();
    assert_eq!(status["id"], id.to_string());
    status["progress"].clone()
}

/// Waits until the batch waits for this cause.
fn wait_for_cause(server: &BatchServer, id: &ItemId, cause: &str) -> Value {
    let name = format!("the batch waits: {cause}");
    wait_for(&name, || Some(progress(server, id)).filter(|it| it["wait"]["cause"] == cause))
}

fn is_time(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z'))
}

/// A server whose first batch its ledger never ends, and two batches behind it.
fn serve_with_stuck_batch(harness: &BatchHarness) -> (BatchServer, Vec<SignedBatch>) {
    harness.ledger.inject(Fault::StaysPending, When::Next(1));
    let server = harness.serve_with(SHORT_LIMITS);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    (server, batches)
}

/// A batch that the server holds, and those behind it, look different from healthy ones.
fn assert_held_batch_explains_the_queue(harness: &BatchHarness) {
    let (server, batches) = serve_with_stuck_batch(harness);
    let held = wait_for_cause(&server, &batches[0].batch_id, "held");
    let hold = &held["wait"]["held"];
    assert!(hold["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{held}");
    assert!(is_time(&hold["since"]) && hold["until_decision"].is_boolean(), "{held}");
    assert_eq!((&held["attempts"], &held["wait"]["behind"]), (&json!(1), &Value::Null), "{held}");

    let last = wait_for_cause(&server, &batches[2].batch_id, "behind");
    let behind = &last["wait"]["behind"];
    assert_eq!(behind["batch_id"], batches[0].batch_id.to_string(), "{last}");
    assert_eq!((&behind["ahead"], &behind["more_ahead"]), (&json!(2), &json!(false)), "{last}");
    assert_eq!(behind["wait"]["held"], *hold, "{last}");
    let text = last["wait"]["text"].as_str().unwrap();
    assert!(text.contains(hold["reason"].as_str().unwrap()), "{last}");

    // Nothing waits any more.
    harness.ledger.heal();
    let (service, id) = (batches[0].service_id.to_string(), batches[0].batch_id.to_string());
    harness.run_command(&[
        "decide",
        &service,
        &id,
        "invalid",
        "--attempt",
        "1",
        "--reason",
        "a test",
    ]);
    let store = harness.store();
    wait_until("the batches behind it are committed", || {
        count_in_state(&store, BatchState::Committed) == 2
    });
    for batch in &batches {
        assert!(progress(&server, &batch.batch_id).get("wait").is_none());
    }
    server.stop();
}

#[test]
fn held_batch_and_those_behind_it_say_so() {
    assert_held_batch_explains_the_queue(&BatchHarness::sawtooth());
}

#[test]
fn held_batch_and_those_behind_it_say_so_on_postgres() {
    let database = TestDatabase::create();
    assert_held_batch_explains_the_queue(&BatchHarness::sawtooth().with_database(database.url()));
}

#[test]
fn conflicting_batch_names_the_one_that_it_waits_for() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::StaysPending, When::Next(1));
    let server = harness
        .serve_with(&[("--ledger-late-arrival-limit", "1h"), ("--services-strategy", "parallel")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    wait_for_cause(&server, &batches[0].batch_id, "status");
    let waiting = wait_for_cause(&server, &batches[1].batch_id, "conflict");
    let waits_for = &waiting["wait"]["waits_for"];
    assert_eq!(waits_for["batch_id"], batches[0].batch_id.to_string(), "{waiting}");
    assert_eq!(waits_for["address"], "7e57", "{waiting}");
    server.stop();
}

#[test]
fn refused_batch_says_when_it_is_tried_again() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.inject(Fault::Unauthorized, When::Always);
    let server =
        harness.serve_with(&[("--testing-first-delay", "1h"), ("--testing-longest-delay", "1h")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let refused = wait_for_cause(&server, &batches[0].batch_id, "delayed");
    assert!(is_time(&refused["wait"]["next_try_at"]), "{refused}");
    assert!(is_time(&refused["wait"]["since"]), "{refused}");
    assert!(refused["last_error"].as_str().is_some_and(|error| error.contains("401")), "{refused}");
    assert_eq!(refused["wait"]["held"], Value::Null);

    let waiting = wait_for_cause(&server, &batches[1].batch_id, "behind");
    let first = &waiting["wait"]["behind"];
    assert_eq!(first["wait"]["next_try_at"], refused["wait"]["next_try_at"], "{waiting}");
    assert_eq!(first["last_error"], refused["last_error"], "{waiting}");
    server.stop();
}

#[test]
fn batch_without_a_status_says_since_when() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_stuck_batch(&harness);
    let pending = wait_for_cause(&server, &batches[0].batch_id, "status");
    assert!(is_time(&pending["wait"]["since"]) && is_time(&pending["submitted_at"]), "{pending}");
    server.stop();
}

/// An operator's hold of a batch that waits is shown before its turn comes.
#[test]
fn waiting_batch_that_is_held_says_both() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_stuck_batch(&harness);
    let id = batches[1].batch_id.to_string();
    let output = harness.run_command(&["hold", "global", &id, "--reason", "look first"]);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let waiting = wait_for_cause(&server, &batches[1].batch_id, "behind");
    assert_eq!(waiting["wait"]["held"]["reason"], "held by an operator: look first");
    assert_eq!(waiting["wait"]["behind"]["ahead"], 1);
    server.stop();
}
