//! What the log says, and how much.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::{batches::signed_batches, process::ProcessOutput, wait::wait_until};

use crate::harness::{BatchHarness, LONG_LEDGER_TIMEOUTS, count_in_state};

const SERVICES: usize = 120;

fn lines_with(output: &ProcessOutput, text: &str) -> usize {
    output.stderr.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn services_that_fail_alike_are_summed_up() {
    let harness = BatchHarness::scabbard_with(SERVICES, |l| l.pending_for(Duration::from_hours(1)));
    let server = harness.serve_with(LONG_LEDGER_TIMEOUTS);
    server.submit(&signed_batches(&harness.services, 1));
    let store = harness.store();
    wait_until("all batches are at the ledger", || {
        count_in_state(&store, BatchState::Pending) == SERVICES
    });
    harness.ledger.inject(Fault::StatusesFail, When::Always);
    server.process.wait_for_log("status requests fail: repeated");
    let output = server.stop_with("TERM");
    let single = lines_with(&output, "status requests fail service=");
    println!("{single} lines for {SERVICES} services");
    assert!((1..SERVICES / 2).contains(&single), "{}", output.stderr);
    assert!(output.stderr.contains(" others"), "the summary counts the services");
}

#[test]
fn json_lines_are_objects_with_their_fields() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::OtherServer { status: 404 }, When::Next(3));
    let server = harness.serve_with(&[("--log-format", "json"), ("--testing-log-counts", "100ms")]);
    server.submit(&signed_batches(&harness.services, 2));
    server.process.wait_for_log("\"committed\":");
    let output = server.stop_with("TERM");
    let mut messages = Vec::new();
    for line in output.stderr.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        for key in ["ts", "level", "target", "message"] {
            assert!(object[key].is_string(), "{line}");
        }
        messages.push(object["message"].as_str().unwrap().to_owned());
    }
    for message in ["server started", "submission ended", "batches since the last count"] {
        assert!(messages.iter().any(|m| m == message), "{message}: {messages:?}");
    }
}

#[test]
fn commits_are_counted_in_the_log() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(&[("--testing-log-counts", "1h")]);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let output = server.stop_with("TERM");
    let counts = "batches since the last count accepted=3 committed=3 invalid=0 held=0";
    assert_eq!(lines_with(&output, counts), 1, "{}", output.stderr);
}

#[test]
fn not_sent_names_the_url_without_its_password() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.kill();
    let address = harness.ledger.url().replace("http://", "");
    let url = format!("http://user:hidden@{address}/path");
    let server = harness.serve_with(&[("--ledger-urls", &url)]);
    server.submit(&signed_batches(&harness.services, 1));
    server.process.wait_for_log("outcome=\"not sent\"");
    let output = server.stop_with("TERM");
    let line = output.stderr.lines().find(|line| line.contains("outcome=\"not sent\"")).unwrap();
    assert!(line.contains(&format!("http://{address}:")), "{line}");
    assert!(!output.stderr.contains("hidden"), "{}", output.stderr);
}

#[test]
fn hold_and_resubmission_are_logged_once() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let output = server.stop_with("TERM");
    let again = "the batch is submitted again after this attempt service=global";
    assert_eq!(lines_with(&output, again), 1, "{}", output.stderr);

    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::StaysPending, When::Next(1));
    let server = harness.serve_with(&[("--poll-give-up-after", "1s")]);
    server.submit(&batches);
    server.process.wait_for_log("batch held");
    let store = harness.store();
    wait_until("the batch is held", || !store.held_batches(None, 1).unwrap().is_empty());
    let held = store.held_batches(None, 1).unwrap().remove(0);
    let attempt = held.progress.attempts;
    store.decide(&held.service_id, &held.batch_id, attempt, Decision::Invalid).unwrap();
    let output = server.stop_with("TERM");
    assert_eq!(lines_with(&output, "batch held"), 1, "{}", output.stderr);
}
