//! After a pause or a hold, no batch is sent any more except those that the answer names.

use std::{collections::BTreeSet, time::Duration};

use grid_batch_core::ItemId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, RandomBatches, When};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{batches::SignedBatch, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const SLOTS: usize = 2;
const BATCHES: usize = 20;

/// A server that sends few batches at a time.
const FLAGS: &[(&str, &str)] = &[
    ("--submit-concurrency", "2"),
    ("--ledger-request-timeout", "20s"),
    ("--testing-sending-limit", "21s"),
    ("--testing-total-limit", "50s"),
    ("--testing-accept-absence-after", "22s"),
];

/// Something keeps what is sent until a test delivers it.
const KEPT: Fault = Fault::LateArrival(Duration::from_hours(1));

/// A server with batches that were taken and wait for those that are being sent.
struct SlowLedger {
    harness: BatchHarness,
    server: BatchServer,
    batches: Vec<SignedBatch>,
}

impl SlowLedger {
    /// Batches of Sawtooth's one service that do not conflict.
    fn new() -> Self {
        Self::with(BatchHarness::sawtooth(), &[])
    }

    fn with(harness: BatchHarness, flags: &[(&str, &str)]) -> Self {
        let mut random = RandomBatches::new(7);
        let batch = |_| SignedBatch::new("global", random.independent());
        let batches: Vec<_> = (0..BATCHES).map(batch).collect();
        harness.ledger.inject(KEPT, When::Always);
        let server = harness.serve_with(&[FLAGS, flags].concat());
        server.submit(&batches);
        let store = harness.store();
        wait_until("all are taken", || {
            count_in_state(&store, BatchState::Submitting) == batches.len()
        });
        wait_until("each slot is in use", || harness.ledger.kept_submissions() == SLOTS);
        Self { harness, server, batches }
    }

    /// Lets what is being sent arrive, and waits until none is being sent.
    fn deliver(&self) {
        self.harness.ledger.inject(KEPT, When::Never);
        let store = self.harness.store();
        wait_until("no submission is left", || {
            self.harness.ledger.deliver_late();
            count_in_state(&store, BatchState::Submitting) == 0
        });
    }

    fn received(&self) -> BTreeSet<ItemId> {
        let ids = self.batches.iter().map(|batch| batch.batch_id);
        ids.filter(|id| self.harness.ledger.times_received(id) > 0).collect()
    }

    fn act(&self, path: &str) -> Value {
        act(&self.server, path)
    }

    /// Those that were named and no others arrive at the ledger; the others wait until the service goes on.
    fn assert_only_named_arrive(self, named: &BTreeSet<ItemId>) {
        self.deliver();
        assert_eq!(self.received(), *named);
    }
}

#[track_caller]
fn act(server: &BatchServer, path: &str) -> Value {
    let response = server.post_json(path, &json!({"reason": "maintenance"}));
    assert_eq!(response.status, 200, "{path}: {response:?}");
    response.json()
}

/// The batches that an answer names as being sent.
fn named(answer: &Value) -> BTreeSet<ItemId> {
    let being_sent = &answer["being_sent"];
    let batches = being_sent["batches"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(being_sent["count"], batches.len(), "{answer}");
    batches.iter().map(|batch| batch["batch_id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn held_batch_that_waits_for_a_slot_is_not_sent() {
    let slow = SlowLedger::new();
    let mut sent = BTreeSet::new();
    for batch in &slow.batches {
        let answer = slow.act(&format!("/v1/batches/{}/hold", batch.batch_id));
        sent.append(&mut named(&answer));
    }
    assert!(sent.len() <= SLOTS, "{sent:?}");
    let store = slow.harness.store();
    let unsent = slow.batches.iter().find(|batch| !sent.contains(&batch.batch_id)).unwrap();
    let stored = store.find(&unsent.batch_id).unwrap().remove(0);
    assert_eq!(stored.progress.state, BatchState::Delayed, "it is back before the answer");
    assert!(stored.held.is_some());
    slow.deliver();
    assert_eq!(slow.received(), sent);

    slow.act(&format!("/v1/batches/{}/release", unsent.batch_id));
    wait_until("it is sent when it is released", || {
        slow.harness.ledger.times_received(&unsent.batch_id) == 1
    });
    slow.server.stop();
}

#[test]
fn paused_service_sends_only_what_the_answer_names() {
    let slow = SlowLedger::new();
    let answer = slow.act("/v1/services/global/pause");
    let sent = named(&answer);
    assert_eq!(sent.len(), SLOTS, "{answer}");
    let store = slow.harness.store();
    assert_eq!(count_in_state(&store, BatchState::Delayed), BATCHES - SLOTS);
    slow.deliver();
    assert_eq!(slow.received(), sent);

    slow.act("/v1/services/global/resume");
    wait_until("the others are committed, too", || {
        count_in_state(&store, BatchState::Committed) == BATCHES
    });
    slow.server.stop();
}

#[test]
fn pause_of_all_sends_only_what_the_answer_names() {
    let slow = SlowLedger::new();
    let sent = named(&slow.act("/v1/pause"));
    assert_eq!(sent.len(), SLOTS);
    slow.assert_only_named_arrive(&sent);
}

#[test]
fn pause_waits_until_nothing_is_being_sent() {
    let slow = SlowLedger::new();
    slow.harness.ledger.inject(KEPT, When::Never);
    let answer = std::thread::scope(|scope| {
        let pausing = scope.spawn(|| slow.act("/v1/services/global/pause?wait=60"));
        let store = slow.harness.store();
        wait_until("the others are back", || {
            count_in_state(&store, BatchState::Submitting) == SLOTS
        });
        slow.harness.ledger.deliver_late();
        pausing.join().unwrap()
    });
    assert_eq!(named(&answer), BTreeSet::new());
    assert_eq!(slow.received().len(), SLOTS);
}

#[test]
fn command_says_what_is_being_sent_during_a_pause() {
    let slow = SlowLedger::new();
    let url = format!("http://{}", slow.server.address);
    let pause = ["pause", "global", "--reason", "maintenance", "--url", &url];
    let paused = slow.harness.run_command(&pause);
    assert!(paused.stdout.contains("2 batches are being sent"), "{paused:?}");
}

/// The command writes to the database; the server finds out.
#[test]
fn pause_by_a_command_calls_batches_back() {
    let slow = SlowLedger::new();
    let paused = slow.harness.run_command(&["pause", "--all", "--reason", "maintenance"]);
    assert_eq!(paused.exit_code, Some(0), "{paused:?}");
    let store = slow.harness.store();
    wait_until("the others are back", || count_in_state(&store, BatchState::Submitting) == SLOTS);
    slow.deliver();
    assert_eq!(slow.received().len(), SLOTS);
}

#[test]
fn other_instance_calls_its_batches_back() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    let slow = SlowLedger::with(harness, &[("--claims-name", "first")]);
    let second = slow.harness.serve_with(&[("--claims-name", "second")]);
    act(&second, "/v1/pause");
    let store = slow.harness.store();
    wait_until("the others are back", || count_in_state(&store, BatchState::Submitting) == SLOTS);
    slow.deliver();
    assert_eq!(slow.received().len(), SLOTS);
    second.stop();
}
