//! Clients that had sent batches to the ledger themselves before they sent them to the server.

use std::{collections::HashMap, fs, time::Duration};

use grid_batch_core::batches::BatchState;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_ledger_sim::{
    ExecutionResult, Fault, LedgerSimBuilder, LoggedRequest, RequestKind, SentTwice, When,
};
use grid_batch_protocol::{CylinderToken, SigningKey};
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, encode_batch_list, signed_batches},
    http::{request, send},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const NO_EVENTS: &[(&str, &str)] = &[("--ledger-event-sockets", "0")];

/// A ledger of one service, on which a batch that is sent again is executed again.
fn scabbard() -> BatchHarness {
    BatchHarness::scabbard_with(1, |ledger| ledger.sent_twice(SentTwice::StuckValid))
}

/// Sends batches to the ledger as another client does, and waits until they are committed.
fn commit_past_the_server(harness: &BatchHarness, batches: &[SignedBatch]) {
    let (circuit, service) = harness.services[0].split_once("::").unwrap();
    let path = format!("/scabbard/{circuit}/{service}/batches");
    let token = CylinderToken::new(&SigningKey::from_seed(9));
    let authorization = format!("authorization: Bearer Cylinder:{}", token.as_str());
    let request = request("POST", &path, &[&authorization], &encode_batch_list(batches));
    let applied = harness.ledger.record().len();
    assert_eq!(send(harness.ledger.address(), &request).unwrap().status, 202);
    wait_until("the client's batches are committed", || {
        harness.ledger.record().len() == applied + batches.len()
    });
}

/// Waits until all batches are committed, each executed once and received once by the ledger.
fn assert_each_sent_once(harness: &BatchHarness, batches: &[SignedBatch]) {
    let store = harness.store();
    let is_sent_again =
        || batches.iter().any(|batch| harness.ledger.times_received(&batch.batch_id) > 1);
    wait_until("all batches are committed, or one is sent again", || {
        is_sent_again() || count_in_state(&store, BatchState::Committed) == batches.len()
    });
    for (number, batch) in batches.iter().enumerate() {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1, "batch {number}");
    }
    let audit = harness.ledger.audit(&batch_ids(batches));
    assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    assert_eq!(count_in_state(&store, BatchState::Committed), batches.len());
}

/// A server that has sent a batch of the service already, and ten batches more.
fn serve_after_a_first_batch(
    harness: &BatchHarness,
    flags: &[(&str, &str)],
) -> (BatchServer, Vec<SignedBatch>) {
    let batches = signed_batches(&harness.services, 11);
    let server = harness.serve_with(flags);
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    (server, batches)
}

#[test]
fn batches_that_nodes_have_are_not_sent() {
    let harness = scabbard();
    let (server, batches) = serve_after_a_first_batch(&harness, NO_EVENTS);
    commit_past_the_server(&harness, &batches[1..6]);
    server.submit(&batches[1..]);
    assert_each_sent_once(&harness, &batches);
    server.stop();
}

#[test]
fn batches_that_events_told_of_are_not_sent() {
    let harness = scabbard();
    let (server, batches) = serve_after_a_first_batch(&harness, &[]);
    commit_past_the_server(&harness, &batches[1..6]);
    server.submit(&batches[1..]);
    assert_each_sent_once(&harness, &batches);
    server.stop();
}

/// The node has forgotten all statuses, and a new server has heard no event.
#[test]
fn batches_in_the_replay_of_events_are_not_sent() {
    let harness = scabbard();
    let (server, batches) = serve_after_a_first_batch(&harness, &[]);
    server.stop();
    commit_past_the_server(&harness, &batches[1..6]);
    harness.ledger.restart();
    harness.ledger.inject(Fault::LateReplay(Duration::from_millis(50)), When::Always);
    let server = harness.serve();
    server.submit(&batches[1..]);
    assert_each_sent_once(&harness, &batches);
    server.stop();
}

#[test]
fn batches_that_retention_removed_are_not_sent_again() {
    let harness = scabbard();
    let (server, batches) = serve_after_a_first_batch(&harness, &[]);
    server.submit(&batches[1..6]);
    harness.wait_until_all_committed(&batches[..6]);
    server.stop();
    remove_all_ended(&harness.store());

    let server = harness.serve_with(NO_EVENTS);
    server.submit(&batches[6..7]);
    // The last two of the others were kept.
    wait_until_committed(&harness, 3);
    server.submit(&batches[1..6]);
    wait_until_committed(&harness, 6);
    for batch in &batches[..7] {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1);
    }
    server.stop();
}

fn wait_until_committed(harness: &BatchHarness, batches: usize) {
    let store = harness.store();
    wait_until("the batches are committed", || {
        count_in_state(&store, BatchState::Committed) == batches
    });
}

fn remove_all_ended(store: &Store) {
    store.remove_ended(Timestamp::from_micros(i64::MAX), None, 100).unwrap();
}

/// An earlier copy of the database has a batch that was not sent before those that were.
#[test]
fn batches_that_a_restored_database_has_lost_are_not_sent() {
    let harness = scabbard();
    let (server, batches) = serve_after_a_first_batch(&harness, NO_EVENTS);
    server.stop();
    let copy = harness.path().join("copy.db");
    fs::copy(harness.database_file(), &copy).unwrap();
    let server = harness.serve_with(NO_EVENTS);
    server.submit(&batches[1..6]);
    harness.wait_until_all_committed(&batches[..6]);
    server.stop();

    fs::copy(&copy, harness.database_file()).unwrap();
    let server = harness.serve_with(NO_EVENTS);
    let mut resubmitted = batches[6..7].to_vec();
    resubmitted.extend_from_slice(&batches[1..6]);
    server.submit(&resubmitted);
    wait_until_committed(&harness, 7);
    for batch in &batches[..7] {
        assert_eq!(harness.ledger.times_received(&batch.batch_id), 1);
    }
    server.stop();
}

/// When each batch was committed, by the ledger's record.
fn commit_times(harness: &BatchHarness) -> HashMap<ItemId, Timestamp> {
    let record = harness.ledger.record().into_iter();
    let applied = record.filter(|entry| entry.result == ExecutionResult::Applied);
    applied.map(|entry| (entry.batch_id, entry.time)).collect()
}

/// The status requests about a batch before its POST, and when the POST was received.
fn questions_before_post(requests: &[LoggedRequest], id: &ItemId) -> (Vec<Timestamp>, Timestamp) {
    let about: Vec<_> = requests.iter().filter(|request| request.batch_ids.contains(id)).collect();
    let is_post = |request: &&LoggedRequest| request.kind == RequestKind::Submission;
    let post = about.iter().position(is_post).unwrap();
    let questions = about[..post].iter().map(|request| request.received_at);
    (questions.collect(), about[post].received_at)
}

/// Much longer than a question takes.
const COMMIT_TIME: Duration = Duration::from_millis(500);

#[test]
fn question_before_a_post_is_asked_while_the_batch_waits() {
    let configure = |ledger: LedgerSimBuilder| {
        let late_statuses = Fault::LateStatuses(Duration::from_millis(20));
        ledger.valid_for(COMMIT_TIME).fault(late_statuses, When::Always)
    };
    let harness = BatchHarness::scabbard_with(1, configure);
    // Until the events of the service are received, answers count for a short time only.
    let (server, batches) = serve_after_a_first_batch(&harness, &[]);
    server.submit(&batches[1..]);
    harness.wait_until_all_committed(&batches);
    let (requests, committed_at) = (harness.ledger.requests(), commit_times(&harness));
    // The first of these batches waits for nothing.
    for pair in batches[1..].windows(2) {
        let [before, batch] = [&pair[0].batch_id, &pair[1].batch_id];
        let (questions, posted_at) = questions_before_post(&requests, batch);
        assert_eq!(questions.len(), 1, "one question before each POST");
        let order = [questions[0], committed_at[before], posted_at];
        assert!(order.is_sorted(), "asked, committed the one before, posted: {order:?}");
    }
    server.stop();
}
