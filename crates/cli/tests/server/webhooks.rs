//! Events that the server delivers to webhooks, and the commands about them.

use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    http::{request, send},
    process::ProcessOutput,
    wait::{wait_for, wait_until},
    webhook_receiver::{ReceivedMessage, WebhookReceiver},
};
use serde_json::{Value, json};

use crate::harness::BatchHarness;

const ALLOWED: &[(&str, &str)] = &[("--requests-options", "webhooks=private:127.0.0.1")];

/// What happened to a batch: its kind and the state after.
fn told(message: &ReceivedMessage) -> (String, String, String) {
    let body: Value = serde_json::from_str(&message.body).unwrap();
    let text = |name: &str| body["data"][name].as_str().unwrap().to_owned();
    (text("batch_id"), text("kind"), text("state"))
}

/// A command, with a reason if it changes something.
fn with_reason<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let changes = !["list", "failed"].contains(&arguments[0]);
    let reason: &[&str] = if changes { &["--reason", "a test"] } else { &[] };
    [&["webhooks"], arguments, reason].concat()
}

/// The same setting as [`ALLOWED`].
const ALLOWED_TO_COMMANDS: &[(&str, &str)] =
    &[("GRID_BATCH_REQUESTS_OPTIONS", "webhooks=private:127.0.0.1")];

fn run(harness: &BatchHarness, arguments: &[&str]) -> ProcessOutput {
    let output = harness.run_command_with(&with_reason(arguments), ALLOWED_TO_COMMANDS);
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    output
}

fn run_json(harness: &BatchHarness, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(harness, &[arguments, &["--json"]].concat()).stdout).unwrap()
}

#[test]
fn events_of_a_batch_are_delivered_in_order() {
    let harness = BatchHarness::sawtooth();
    let receiver = WebhookReceiver::start(&["500 No"]);
    let server = harness.serve_with(ALLOWED);
    let created = run_json(&harness, &["create", &receiver.url()]);
    let secret = created["secret"].as_str().unwrap().to_owned();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let SignedBatch { batch_id, .. } = &batches[0];
    let first = receiver.next();
    let of_first = (batch_id.to_string(), "accepted".to_owned(), "new".to_owned());
    assert_eq!(told(&first), of_first);
    let error = wait_for("the failure is listed", || {
        let list = run_json(&harness, &["list"]);
        list["webhooks"][0]["last_error"].as_str().map(str::to_owned)
    });
    assert!(error.contains("500"), "{error}");
    assert!(run(&harness, &["list"]).stdout.contains("attempt 2 in "));

    // The event waits for some seconds, and not for an operator.
    run(&harness, &["redeliver", created["id"].as_str().unwrap()]);
    assert_eq!(receiver.next().id, first.id);
    let mut kinds = Vec::new();
    while !kinds.ends_with(&[("status".to_owned(), "committed".to_owned())]) {
        let (id, kind, state) = told(&receiver.next());
        assert_eq!(id, batch_id.to_string());
        kinds.push((kind, state));
    }
    assert_eq!(kinds[0], ("submitted".to_owned(), "submitting".to_owned()), "{kinds:?}");

    let list = run(&harness, &["list", "--json"]).stdout;
    let output = server.stop_with("TERM");
    let bytes = secret.strip_prefix("whsec_").unwrap();
    for text in [&list, &output.stdout, &output.stderr] {
        assert!(!text.contains(bytes), "the secret is told once");
    }
}

#[test]
fn webhooks_are_created_and_removed_over_http_and_by_commands() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let body =
        json!({ "url": "https://example.com/", "kinds": ["held"], "reason": "a test" }).to_string();
    let headers = ["content-type: application/json"];
    let post = request("POST", "/v1/webhooks", &headers, body.as_bytes());
    let created = send(server.address, &post).unwrap();
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let text = run(&harness, &["create", "http://example.com/b", "--service", "global"]).stdout;
    assert!(text.contains("secret whsec_"), "{text}");
    let list = run(&harness, &["list"]).stdout;
    assert!(list.contains("https://example.com/") && list.contains("2 webhooks in "), "{list}");
    assert!(run(&harness, &["failed", &id]).stdout.contains("0 messages were given up"));
    run(&harness, &["remove", &id]);
    let webhooks = run_json(&harness, &["list"])["webhooks"].clone();
    assert_eq!((&webhooks[0]["services"], &webhooks[1]), (&json!(["global"]), &Value::Null));
    server.stop();

    for (arguments, error) in [
        (&["remove", "999"][..], "there is no such webhook"),
        (&["failed", "999"], "there is no such webhook"),
        (&["redeliver", "999"], "there is no such webhook"),
        (&["redeliver", "2", "--failed", "7"], "there is no such failed message"),
        (&["create", "https://me:pass-word@example.com/"], "without a user name"),
        (&["create", "http://127.0.0.1:9/pass-word"], "private address"),
        (&["change", "2", "--to", "http://[::1]/pass-word"], "private address"),
        (&["ping", "999"], "there is no such webhook"),
    ] {
        let output = harness.run_command(&with_reason(arguments));
        assert_eq!(output.exit_code, Some(1), "{output:?}");
        let message = output.error_message();
        assert!(message.contains(error) && !message.contains("pass-word"), "{message}");
    }
}

#[test]
fn commands_of_webhooks_use_a_running_server() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve();
    let url = format!("http://{}", server.address);
    let run = |arguments: &[&str]| {
        harness.run_command(&[&with_reason(arguments)[..], &["--url", &url]].concat())
    };
    let create =
        ["create", "http://example.com/b", "--service", "global", "--kind", "held", "--json"];
    let created: Value = serde_json::from_str(&run(&create).stdout).unwrap();
    assert!(created["secret"].as_str().unwrap().starts_with("whsec_"), "{created}");
    assert_eq!((&created["services"], &created["kinds"]), (&json!(["global"]), &json!(["held"])));
    let id = created["id"].as_str().unwrap();
    let listed = run(&["list"]).stdout;
    assert!(listed.contains("http://example.com/b") && listed.contains("delivers"), "{listed}");
    assert_eq!(run(&["failed", id]).stdout, "0 messages were given up\n");
    let sent = run(&["redeliver", id]);
    assert_eq!(sent.stdout, "messages that are sent once more: 0\n", "{sent:?}");
    assert_eq!(run(&["remove", id]).stdout, format!("webhook {id} is removed\n"));
    let unknown = run(&["remove", id]);
    assert!(unknown.exit_code == Some(1) && unknown.stderr.contains("1084"), "{unknown:?}");
    assert_eq!(run(&["list"]).stdout, "0 webhooks\n");
    server.stop();
}

/// The next message, which is about the end of a batch.
fn next_end(receiver: &WebhookReceiver) -> String {
    let message = receiver.next();
    let body: Value = serde_json::from_str(&message.body).unwrap();
    assert_eq!(
        (&body["type"], &body["data"]["state"]),
        (&json!("batch.ended"), &json!("committed"))
    );
    body["data"]["batch_id"].as_str().unwrap().to_owned()
}

#[test]
fn receiver_of_ends_is_tested_paused_and_gets_nothing_else() {
    let harness = BatchHarness::sawtooth();
    let receiver = WebhookReceiver::start(&["500 No"]);
    let server = harness.serve_with(ALLOWED);
    let created = run_json(&harness, &["create", &receiver.url(), "--kind", "ended"]);
    let id = created["id"].as_str().unwrap();
    let refused = harness.run_command(&with_reason(&["ping", id]));
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    assert!(refused.error_message().contains("status 500"), "{refused:?}");
    assert!(receiver.next().id.starts_with("ping_"));
    let accepted = run(&harness, &["ping", id]).stdout;
    let ping = receiver.next();
    assert_eq!(accepted, format!("the receiver has accepted {}\n", ping.id));
    assert!(ping.body.contains("webhook.ping"), "{ping:?}");

    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches[..1]);
    assert_eq!(next_end(&receiver), batches[0].batch_id.to_string());
    run(&harness, &["pause", id]);
    server.submit(&batches[1..2]);
    harness.wait_until_all_committed(&batches[..2]);
    wait_until("the event that waits is counted", || {
        run_json(&harness, &["list"])["webhooks"][0]["waiting"] == 1
    });
    let listed = run(&harness, &["list"]).stdout;
    assert!(listed.contains("paused ") && listed.contains("events that wait: 1"), "{listed}");
    assert!(receiver.is_unused());
    let waiting = harness.run_command(&with_reason(&["ping", id, "--timeout", "1ms"]));
    assert!(waiting.error_message().contains("was not sent in time"), "{waiting:?}");
    run(&harness, &["resume", id]);
    assert_eq!(next_end(&receiver), batches[1].batch_id.to_string());
    assert!(receiver.next().body.contains("webhook.ping"));

    let rotated = run_json(&harness, &["rotate", id, "--keep", "1h"]);
    assert_ne!(rotated["secret"], created["secret"]);
    server.submit(&batches[2..]);
    let signature = receiver.next().signature;
    assert_eq!(signature.split(' ').count(), 2, "{signature}");
    let changed = run_json(&harness, &["change", id, "--service", "global", "--all-kinds"]);
    assert_eq!((&changed["services"], &changed["kinds"]), (&json!(["global"]), &json!([])));
    server.stop();
}
