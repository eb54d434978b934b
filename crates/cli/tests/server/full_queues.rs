//! Queues that are full of batches which cannot go on: what still gets in, what the health says, and that they
//! empty again.

use std::{env, slice, time::Instant};

use grid_batch_core::ItemId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::operators::{
    Operator, OperatorAction, OperatorStore, OperatorTarget, OperatorVerb,
};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_protocol::{BatchBuilder, SigningKey, TransactionBuilder};
use grid_batch_store::Store;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, depending_batch, signed_batch},
    wait::wait_until,
};
use serde_json::Value;

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const SERVICE: &str = "global";

/// The limit of open batches of most tests.
const LIMIT: &[(&str, &str)] = &[("--intake-open-batches", "5")];

/// A batch that conflicts with no other one, of a signer.
fn batch_of(signer: u64, number: usize, dependencies: &[ItemId]) -> SignedBatch {
    let key = SigningKey::from_seed(signer);
    let address = format!("7e57{number:066x}");
    let transaction = TransactionBuilder::new("test", "1.0")
        .inputs([address.as_str()])
        .outputs([address.as_str()])
        .dependencies(dependencies.iter().copied())
        .nonce(format!("{signer}/{number}"))
        .payload(format!("set {number} to {signer}"))
        .sign(&key, &key.public_key());
    SignedBatch::new(SERVICE, BatchBuilder::new().transaction(transaction).sign(&key))
}

/// A transaction that never arrives.
fn made_up(number: u64) -> ItemId {
    let mut bytes = [0xee; 64];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    ItemId::from_bytes(bytes)
}

fn part(server: &BatchServer, name: &str) -> Value {
    server.get("/health")["parts"][name].clone()
}

/// Waits until a part of the health is degraded with this text in the reason.
#[track_caller]
fn wait_for_reason(server: &BatchServer, name: &str, text: &str) {
    wait_until("the health says why", || {
        let part = part(server, name);
        part["status"] == "degraded" && part["reason"].as_str().unwrap_or("").contains(text)
    });
}

#[track_caller]
fn assert_refused(server: &BatchServer, batch: &SignedBatch, code: u64, text: &str) {
    let response = server.post(slice::from_ref(batch)).unwrap();
    assert_eq!((response.status, &response.json()["error"]["code"]), (429, &code.into()));
    assert!(response.body.contains(text), "{}", response.body);
}

fn act(store: &Store, verb: OperatorVerb) {
    let target = OperatorTarget::Service(SERVICE.parse().unwrap());
    let (reason, operator) = (Some("a test".to_owned()), Operator::program());
    store.act(&OperatorAction { verb, target, reason, operator, dry_run: false }).unwrap();
}

/// Fills a queue whose first batches cannot go on, checks what gets in and what the health says, and that all is
/// committed after `free`.
fn check_full_queue(
    harness: &BatchHarness,
    server: &BatchServer,
    stopped: &[SignedBatch],
    reason: &str,
    free: impl FnOnce(&Store),
) {
    let store = harness.store();
    let late = signed_batch(SERVICE, 900);
    let other = signed_batch(SERVICE, 901);
    server.submit(&[depending_batch(SERVICE, 800, &late.transaction_ids())]);
    assert_refused(server, &other, 1018, "5 open batches");
    wait_for_reason(server, "intake", reason);
    wait_for_reason(
        server,
        "intake",
        "1 miss a transaction (1 signers, up to 1 transactions of one)",
    );
    assert_eq!(part(server, "intake")["open_batches"], 5);
    assert_eq!(part(server, "dependencies")["incomplete_batches"], 1);
    server.submit(slice::from_ref(&late));
    assert_refused(server, &other, 1018, "6 open batches");
    free(&store);
    let all = stopped.len() + 2;
    wait_until("all are committed", || count_in_state(&store, BatchState::Committed) == all);
    wait_until("the queue is not full", || part(server, "intake")["status"] == "ok");
    server.submit(&[other]);
    wait_until("the new one, too", || count_in_state(&store, BatchState::Committed) == all + 1);
}

fn conflicting(count: usize) -> Vec<SignedBatch> {
    (0..count).map(|number| signed_batch(SERVICE, number)).collect()
}

#[test]
fn dependents_of_many_signers_leave_room_for_others() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(&[("--intake-open-batches", "20")]);
    let store = harness.store();
    let late = signed_batch(SERVICE, 1);
    let dependent = |signer, n| batch_of(signer, n, &late.transaction_ids());
    let dependents: Vec<SignedBatch> = (0..10).map(|n| dependent(100 + n as u64 / 2, n)).collect();
    server.submit(&dependents[..2]);
    let third = dependent(100, 50);
    let reason = "2 transactions that have not arrived, and may wait for 2";
    assert_refused(&server, &third, 1100, reason);
    server.submit(&dependents[2..]);
    let of_others: Vec<SignedBatch> = (0..12).map(|n| dependent(200 + n as u64, 100 + n)).collect();
    let reason = "10 batches of the service global wait for transactions that have not arrived";
    of_others.iter().for_each(|batch| assert_refused(&server, batch, 1100, reason));
    assert_eq!(part(&server, "intake")["status"], "ok");
    // Another client is not affected.
    for number in 1..4 {
        server.submit(&[batch_of(300, 300 + number, &[])]);
        wait_until("it is committed", || count_in_state(&store, BatchState::Committed) == number);
    }
    wait_until("the health counts them", || {
        part(&server, "dependencies")["incomplete_batches"] == 10
    });
    server.submit(slice::from_ref(&late));
    wait_until("all are committed", || count_in_state(&store, BatchState::Committed) == 14);
    server.submit(&[third]);
    server.submit(&of_others);
    wait_until("the others, too", || count_in_state(&store, BatchState::Committed) == 27);
    server.stop();
}

#[test]
fn queue_full_behind_a_held_batch_frees_itself() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(LIMIT);
    let stopped = conflicting(4);
    // A service is known after its first batch.
    harness.ledger.inject(Fault::Busy, When::Always);
    server.submit(&stopped);
    let first = &stopped[0];
    let hold = |store: &Store| {
        store.hold_batch(&first.service_id, &first.batch_id, "a test").is_ok_and(|outcome| {
            matches!(outcome, grid_batch_core::batches::ChangeOutcome::Applied { .. })
        })
    };
    let store = harness.store();
    let is_delayed = || count_in_state(&store, BatchState::Delayed) == 1;
    wait_until("the first batch is delayed", is_delayed);
    wait_until("the first batch is held", || hold(&store));
    // It may have been on its way again when it was held.
    wait_until("the first batch is delayed", is_delayed);
    harness.ledger.inject(Fault::Busy, When::Never);
    check_full_queue(&harness, &server, &stopped, "held: 1", |store| {
        store.release_batch(&first.service_id, &first.batch_id, None).unwrap();
    });
    server.stop();
}

#[test]
fn queue_full_of_paused_batches_frees_itself() {
    let harness = BatchHarness::sawtooth();
    let server = harness.serve_with(LIMIT);
    let stopped = conflicting(5);
    server.submit(&stopped[..1]);
    harness.wait_until_all_committed(&stopped[..1]);
    act(&harness.store(), OperatorVerb::Pause);
    server.submit(&stopped[1..]);
    let reason = "an operator has paused the service";
    check_full_queue(&harness, &server, &stopped, reason, |store| {
        act(store, OperatorVerb::Resume);
    });
    server.stop();
}

#[test]
fn queue_full_behind_an_invalid_batch_frees_itself() {
    let harness = BatchHarness::sawtooth();
    harness.ledger.inject(Fault::Invalid, When::Next(1));
    let server = harness.serve_with(&[LIMIT, &[("--services-after-invalid", "halt")]].concat());
    let batches = conflicting(5);
    let (invalid, stopped) = (&batches[0], &batches[1..]);
    server.submit(&batches);
    let store = harness.store();
    wait_until("the first one is invalid", || count_in_state(&store, BatchState::Invalid) == 1);
    check_full_queue(&harness, &server, stopped, "an invalid batch stops others", |store| {
        store.continue_after(&invalid.service_id, &invalid.batch_id, Some("a test")).unwrap();
    });
    server.stop();
}

#[test]
fn queue_full_behind_a_delayed_batch_frees_itself() {
    let harness = BatchHarness::sawtooth_with(|ledger| ledger.fault(Fault::Busy, When::Always));
    let server = harness.serve_with(LIMIT);
    let stopped = conflicting(4);
    server.submit(&stopped);
    check_full_queue(&harness, &server, &stopped, "delayed: 1", |_| {
        harness.ledger.inject(Fault::Busy, When::Never);
    });
    server.stop();
}

/// How many dependents are freed at once. `GRID_BATCH_TEST_DEPENDENTS` overrides it.
fn dependents() -> usize {
    let given = env::var("GRID_BATCH_TEST_DEPENDENTS").ok();
    given.map_or(10_000, |given| given.parse().expect("GRID_BATCH_TEST_DEPENDENTS is a number"))
}

/// Submits a batch after many batches that depend on one transaction were freed.
fn assert_new_batch_is_not_behind_freed_ones(harness: &BatchHarness) {
    let dependents = dependents();
    let limit = (dependents * 10).to_string();
    let server = harness.serve_with(&[("--intake-open-batches", &limit)]);
    let store = harness.store();
    let late = signed_batch(SERVICE, 1);
    let batches: Vec<SignedBatch> =
        (0..dependents).map(|n| batch_of(100, n, &late.transaction_ids())).collect();
    batches.chunks(100).for_each(|list| server.submit(list));
    server.submit(&[late]);
    wait_until("some dependents are committed", || {
        count_in_state(&store, BatchState::Committed) > 50
    });
    let before = count_in_state(&store, BatchState::Committed);
    let new = batch_of(200, dependents, &[]);
    let posted = Instant::now();
    server.submit(slice::from_ref(&new));
    let accepted = posted.elapsed();
    wait_until("the new batch is committed", || {
        store.find(&new.batch_id).unwrap()[0].progress.state == BatchState::Committed
    });
    let committed = posted.elapsed();
    let overtaken = count_in_state(&store, BatchState::Committed) - before;
    println!(
        "accepted after {accepted:?}, committed after {committed:?}, behind {overtaken} of {dependents}"
    );
    assert!(overtaken < 800, "{overtaken} went before it");
    server.stop();
}

#[test]
fn new_batch_does_not_wait_for_all_freed_dependents() {
    assert_new_batch_is_not_behind_freed_ones(&BatchHarness::sawtooth());
}

#[test]
#[ignore = "is measured by hand, as docs/performance.md says"]
fn new_batch_does_not_wait_for_all_freed_on_postgres() {
    let database = TestDatabase::create();
    assert_new_batch_is_not_behind_freed_ones(
        &BatchHarness::sawtooth().with_database(database.url()),
    );
}

#[test]
fn lookup_does_not_wait_for_made_up_dependencies() {
    const MADE_UP: u64 = 3_000;
    let harness = BatchHarness::sawtooth();
    let known = signed_batch(SERVICE, 1);
    harness.execute_for_another_client(&known);
    let server = harness.serve();
    let made_up: Vec<ItemId> = (0..MADE_UP).map(made_up).collect();
    server.submit(&[batch_of(100, 100, &made_up)]);
    let waiting = batch_of(200, 200, &known.transaction_ids());
    server.submit(slice::from_ref(&waiting));
    let store = harness.store();
    wait_until("it is committed", || count_in_state(&store, BatchState::Committed) == 1);
    let left = || part(&server, "dependencies")["not_looked_up"].as_u64().unwrap();
    wait_until("it is known how many are left", || left() > 0);
    let left = left();
    assert!(left > MADE_UP / 3, "{left} were left");
    server.stop();
}
