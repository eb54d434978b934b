//! Batches that nothing else ends: the commands `show`, `hold`, `release` and `decide` while the server
//! runs, and the warning that a service stands still.

use std::time::Duration;

use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_store::Store;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    process::ProcessOutput,
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// A ledger that drops a batch is not noticed, and warnings come soon.
const FLAGS: &[(&str, &str)] =
    &[("--ledger-late-arrival-limit", "1h"), ("--testing-warn-after", "2s")];

/// A server whose first batch is never ended by its ledger, and two batches behind it.
struct Stuck {
    harness: BatchHarness,
    server: BatchServer,
    store: Store,
    batches: Vec<SignedBatch>,
}

impl Stuck {
    fn new(harness: BatchHarness, fault: Fault) -> Self {
        harness.ledger.inject(fault, When::Next(1));
        let server = harness.serve_with(FLAGS);
        let batches = signed_batches(&harness.services, 3);
        server.submit(&batches);
        let store = harness.store();
        let stuck = Self { harness, server, store, batches };
        wait_until("the first batch is at the ledger", || {
            matches!(stuck.stored(0).progress.state, BatchState::Pending | BatchState::Valid)
        });
        stuck
    }

    fn stored(&self, number: usize) -> StoredBatch {
        self.store.find(&self.batches[number].batch_id).unwrap().remove(0)
    }

    /// Runs a command about the batch with this number.
    fn run(&self, command: &str, number: usize, arguments: &[&str]) -> ProcessOutput {
        let SignedBatch { service_id, batch_id, .. } = &self.batches[number];
        let (service, id) = (service_id.to_string(), batch_id.to_string());
        let arguments = [&[command, service.as_str(), id.as_str()][..], arguments].concat();
        let output = self.harness.run_command(&arguments);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        output
    }

    fn times_received(&self, number: usize) -> usize {
        self.harness.ledger.times_received(&self.batches[number].batch_id)
    }

    /// Warned of, looked at, held and ended, and then the batches behind it continue.
    fn assert_an_operator_can_end_it(self) {
        self.server.process.wait_for_log("services stand still");
        let shown = self.run("show", 0, &[]).stdout;
        assert!(shown.contains("position   0 before it, 2 behind it"), "{shown}");

        self.run("hold", 0, &["--reason", "it does not move"]);
        let shown = self.run("show", 0, &[]).stdout;
        assert!(shown.contains("reason     held by an operator: it does not move"), "{shown}");
        assert!(shown.contains("possible   release"), "{shown}");
        let listed = self.harness.run_command(&["held"]).stdout;
        assert!(listed.contains("held by an operator: it does not move"), "{listed}");

        // A Scabbard batch may have been delayed before, while its node replayed events.
        let attempt = self.stored(0).progress.attempts.to_string();
        let decided =
            self.run("decide", 0, &["invalid", "--attempt", &attempt, "--reason", "a test"]).stdout;
        assert!(decided.contains("The ledger may have had this batch."), "{decided}");
        wait_until("the batches behind it are committed", || {
            count_in_state(&self.store, BatchState::Committed) == 2
        });
        assert_eq!(self.stored(0).progress.state, BatchState::Invalid);
        self.server.process.wait_for_log("no service stands still any more");
        self.server.stop();
    }
}

#[test]
fn operator_ends_a_batch_that_stays_pending_on_sawtooth() {
    Stuck::new(BatchHarness::sawtooth(), Fault::StaysPending).assert_an_operator_can_end_it();
}

#[test]
fn operator_ends_a_batch_that_stays_pending_with_postgres() {
    let database = TestDatabase::create();
    let harness = BatchHarness::sawtooth().with_database(database.url());
    Stuck::new(harness, Fault::StaysPending).assert_an_operator_can_end_it();
}

#[test]
fn operator_ends_a_batch_that_stays_valid_on_scabbard() {
    let harness = BatchHarness::scabbard_with(1, |ledger| {
        ledger.coordinator_timeout(Duration::from_millis(50))
    });
    Stuck::new(harness, Fault::DroppedValid).assert_an_operator_can_end_it();
}

#[test]
fn waiting_batch_can_be_held_and_released() {
    let stuck = Stuck::new(BatchHarness::sawtooth(), Fault::StaysPending);
    stuck.run("hold", 1, &["--reason", "look first"]);
    stuck.run("decide", 0, &["invalid", "--attempt", "1", "--reason", "a test"]);
    wait_until("the held batch is next", || stuck.stored(1).held.is_some());
    let shown = stuck.run("show", 1, &[]).stdout;
    assert!(shown.contains("state      new"), "{shown}");

    assert_eq!(stuck.times_received(1), 0);
    stuck.run("release", 1, &["--reason", "a test"]);
    wait_until("the batches are committed", || {
        count_in_state(&stuck.store, BatchState::Committed) == 2
    });
    stuck.server.stop();
}

#[test]
fn held_batch_is_not_sent_again_after_a_restart() {
    let stuck = Stuck::new(BatchHarness::sawtooth(), Fault::StaysPending);
    stuck.run("hold", 0, &["--reason", "it stopped a node"]);
    let Stuck { harness, server, store, batches } = stuck;
    server.process.kill();
    // The ledger does not have the batch any more.
    harness.ledger.restart();
    let server = harness.serve_with(FLAGS);
    let stored = || store.find(&batches[0].batch_id).unwrap().remove(0);
    let before = stored().checked_at.unwrap_or(stored().created_at);
    wait_until("the ledger was asked for longer than it takes to trust absence", || {
        stored().checked_at.is_some_and(|at| at.since(before).as_secs() >= 5)
    });
    assert_eq!(stored().held.unwrap().reason, "held by an operator: it stopped a node");
    assert!(stored().progress.state.awaits_poller(), "{}", stored().progress.state);
    assert_eq!(harness.ledger.times_received(&batches[0].batch_id), 1);

    let (service, id) = (batches[0].service_id.to_string(), batches[0].batch_id.to_string());
    harness.run_command(&[
        "decide",
        &service,
        &id,
        "absent",
        "--attempt",
        "1",
        "--reason",
        "a test",
    ]);
    wait_until("all batches are committed", || count_in_state(&store, BatchState::Committed) == 3);
    server.stop();
}
