//! A POST that arrives at the ledger long after the server gave it up.

use std::time::{Duration, Instant};

use grid_batch_core::batches::{BatchState, Decision};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{ExecutionResult, Fault, SentTwice, When};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, COORDINATOR_TIMEOUT, count_in_state};

const NEVER: Duration = Duration::from_hours(1);

/// The first attempt is kept on its way, and the second one is answered that the batch is invalid.
fn serve_with_late_first_attempt(
    harness: &BatchHarness,
    limit: &str,
) -> (BatchServer, Vec<SignedBatch>) {
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    harness.ledger.inject(Fault::Invalid, When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", limit)]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    wait_until("the second attempt is invalid", || {
        harness.ledger.record().iter().any(|entry| entry.result == ExecutionResult::Invalid)
    });
    (server, batches)
}

fn wait_until_first_waits(store: &Store, batches: &[SignedBatch]) {
    wait_until("the first batch waits for its first attempt", || {
        let batch = store.find(&batches[0].batch_id).unwrap().remove(0);
        batch.last_error.is_some_and(|error| error.contains("an earlier attempt may still arrive"))
    });
}

#[test]
fn invalid_waits_for_an_earlier_attempt() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "1h");
    let store = harness.store();
    wait_until_first_waits(&store, &batches);
    assert_eq!(count_in_state(&store, BatchState::Invalid), 0);
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);

    harness.ledger.deliver_late();
    wait_until("both batches are committed", || count_in_state(&store, BatchState::Committed) == 2);
    let audit = harness.ledger.audit(&batch_ids(&batches));
    assert!(audit.is_clean(), "{audit}");
    server.stop();
}

/// Waits until evidence was looked for again and again, for much longer than anything but the limit lasts.
pub fn wait_for_searches(harness: &BatchHarness) {
    let before = harness.ledger.requests().len();
    let started = Instant::now();
    wait_until("evidence was looked for again and again", || {
        let requests = harness.ledger.requests().len() - before;
        requests >= 40 && started.elapsed() >= 5 * COORDINATOR_TIMEOUT
    });
}

fn assert_applied_once_and_in_order(harness: &BatchHarness, batches: &[SignedBatch]) {
    harness.wait_until_all_committed(batches);
    for batch in batches {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1);
    }
}

#[test]
fn late_post_is_waited_for_on_scabbard() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    let store = harness.store();
    wait_until("the first batch is in doubt", || count_in_state(&store, BatchState::InDoubt) == 1);
    wait_for_searches(&harness);
    assert_eq!(harness.ledger.times_received(&batches[0].batch_id), 0, "it was sent again");
    assert_eq!(store.held_batches(None, 1).unwrap(), []);

    harness.ledger.deliver_late();
    assert_applied_once_and_in_order(&harness, &batches);
    server.stop();
}

#[test]
fn post_that_never_arrives_is_repeated_after_the_limit() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "4s")]);
    let batches = signed_batches(&harness.services, 3);
    let started = Instant::now();
    server.submit(&batches);
    // The operator's view is that of a batch that is waited for, not of one that needs a decision.
    harness.wait_until_all_committed(&batches);
    assert!(started.elapsed() >= Duration::from_secs(4), "{:?}", started.elapsed());
    server.stop();
}

#[test]
fn batch_that_stays_valid_for_no_reason_is_waited_for() {
    let harness =
        BatchHarness::scabbard_with(1, |ledger| ledger.valid_for(6 * COORDINATOR_TIMEOUT));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    assert_applied_once_and_in_order(&harness, &batches);
    server.stop();
}

/// An operator may decide too early.
#[test]
fn second_execution_is_an_error_in_log_and_health() {
    let harness = BatchHarness::scabbard_with(1, |ledger| ledger.sent_twice(SentTwice::Committed));
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let batches = signed_batches(&harness.services, 2);
    let store = harness.store();
    server.submit(&batches);
    wait_until("the first batch is in doubt", || count_in_state(&store, BatchState::InDoubt) == 1);
    let first = &batches[0];
    let service = first.service_id.as_str().parse().unwrap();
    let attempt = store.find(&first.batch_id).unwrap()[0].progress.attempts;
    store.decide(&service, &first.batch_id, attempt, Decision::Absent).unwrap();
    wait_until("both are committed", || count_in_state(&store, BatchState::Committed) == 2);
    assert_eq!(server.get("/health")["parts"]["events"]["status"], "ok");

    // An event that comes a second after the last one does not belong to a replay.
    harness.ledger.inject(Fault::LateEvents(Duration::from_millis(1_100)), When::Next(1));
    harness.ledger.deliver_late();
    server.process.wait_for_log("the ledger has applied a transaction a second time");
    wait_until("health says it", || {
        let events = &server.get("/health")["parts"]["events"];
        events["status"] == "degraded" && events["repeated"] == 1
    });
    server.stop();
}

#[test]
fn limit_that_is_too_short_is_refused() {
    let harness = BatchHarness::scabbard(1);
    let flags = &["serve", "--ledger-late-arrival-limit", "500ms"];
    let output = harness.run_command(flags);
    assert_ne!(output.exit_code, Some(0));
    let rule =
        "ledger.coordinator_timeout is 800ms; it must be less than ledger.late_arrival_limit";
    assert!(output.stderr.contains(rule), "{output:?}");
}

#[test]
fn wait_for_an_earlier_attempt_survives_a_kill() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "1h");
    let store = harness.store();
    wait_until_first_waits(&store, &batches);
    server.process.kill();

    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let checked_at = |store: &Store| store.find(&batches[0].batch_id).unwrap()[0].checked_at;
    let before = checked_at(&store);
    wait_until("the new server has polled the batch", || checked_at(&store) > before);
    assert_eq!(harness.ledger.times_received(&batches[1].batch_id), 0);
    harness.ledger.deliver_late();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn invalid_is_final_when_no_attempt_can_arrive_any_more() {
    let harness = BatchHarness::sawtooth();
    let (server, batches) = serve_with_late_first_attempt(&harness, "2s");
    let store = harness.store();
    wait_until("the first batch ends", || count_in_state(&store, BatchState::Invalid) == 1);
    wait_until("the next batch continues", || count_in_state(&store, BatchState::Committed) == 1);

    // The limit was too short.
    harness.ledger.deliver_late();
    server.process.wait_for_log("reports a batch as committed that had ended as invalid");
    let first = &batches[0];
    let service = first.service_id.as_str().parse().unwrap();
    let details = store.details(&service, &first.batch_id).unwrap().unwrap();
    assert_eq!(details.batch.progress.state, BatchState::Invalid);
    assert_eq!(details.commit_after_invalid.unwrap().source, "evidence");
    server.stop();
}

#[test]
fn rejection_is_not_final_while_an_attempt_may_arrive() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::LateArrival(NEVER), When::Next(1));
    harness.ledger.inject(Fault::Rejected, When::Next(1));
    let server = harness.serve_with(&[("--ledger-late-arrival-limit", "1h")]);
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    let store = harness.store();
    wait_until_first_waits(&store, &batches);

    harness.ledger.deliver_late();
    harness.wait_until_all_committed(&batches);
    server.stop();
}
