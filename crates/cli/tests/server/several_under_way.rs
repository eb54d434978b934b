//! Many batches of one Sawtooth ledger under way when the server is killed or the node loses its queue.

use std::{sync::Arc, time::Duration};

use grid_batch_core::ManualClock;
use grid_batch_core::batches::BatchState;
use grid_batch_ledger_sim::{ExecutionResult, LedgerSimBuilder, RandomBatches};
use grid_batch_protocol::Batch;
use grid_batch_store::Store;
use grid_batch_test_support::{
    batches::SignedBatch,
    http::{request, send},
    wait::{wait_for, wait_until},
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

/// How long a batch is pending by the clock of the ledger, which only the test advances.
const PENDING: Duration = Duration::from_secs(60);

/// How many batches may be under way at first.
const FIRST: usize = 50;

/// How many batches of a service may be under way.
const MANY: usize = 100;

struct SlowLedger {
    harness: BatchHarness,
    clock: Arc<ManualClock>,
    store: Store,
    batches: Vec<Batch>,
    flags: &'static [(&'static str, &'static str)],
}

impl SlowLedger {
    fn new(
        batches: Vec<Batch>,
        flags: &'static [(&'static str, &'static str)],
        configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
    ) -> Self {
        let clock = Arc::new(ManualClock::default());
        let harness = BatchHarness::sawtooth_with(|ledger| {
            configure(ledger.pending_for(PENDING).clock(clock.clone()))
        });
        let store = harness.store();
        Self { harness, clock, store, batches, flags }
    }

    fn serve(&self) -> BatchServer {
        self.harness.serve_with(self.flags)
    }

    fn submit(&self, server: &BatchServer) {
        let list: Vec<SignedBatch> =
            self.batches.iter().map(|batch| SignedBatch::new("global", batch.clone())).collect();
        server.submit(&list);
    }

    #[track_caller]
    fn wait_until_pending(&self, count: usize) {
        wait_until("the ledger has accepted the batches", || {
            count_in_state(&self.store, BatchState::Pending) == count
        });
    }

    /// Lets the ledger execute batches until so many are under way as may be.
    #[track_caller]
    fn wait_until_many_are_pending(&self, server: &BatchServer) {
        wait_until("the ledger has accepted the batches", || {
            let pending = count_in_state(&self.store, BatchState::Pending);
            let health = send(server.address, &request("GET", "/health", &[], b"")).unwrap();
            let window = health.json()["parts"]["in_flight"]["window"].as_u64().unwrap();
            if pending < MANY && pending as u64 >= window {
                self.execute();
            }
            pending == MANY
        });
    }

    /// Lets the ledger execute what it has.
    fn execute(&self) {
        self.clock.advance(PENDING);
    }

    /// Lets the ledger execute batches until all have ended, and compares its state with that of applying
    /// them one by one.
    #[track_caller]
    fn wait_until_ended(&self) {
        wait_for("all batches end", || {
            self.execute();
            let ended = [BatchState::Committed, BatchState::Invalid]
                .map(|state| count_in_state(&self.store, state));
            (ended.iter().sum::<usize>() == self.batches.len()).then_some(())
        });
        let audit = self.harness.ledger.audit_state(&self.batches);
        assert!(audit.is_clean(), "{audit:#?}");
    }

    fn times_received(&self, batch: &Batch) -> usize {
        self.harness.ledger.times_received(&batch.header_signature.parse().unwrap())
    }

    fn count_applied(&self) -> usize {
        let record = self.harness.ledger.record();
        record.iter().filter(|entry| entry.result == ExecutionResult::Applied).count()
    }
}

fn independent(count: usize) -> Vec<Batch> {
    let mut random = RandomBatches::new(3);
    (0..count).map(|_| random.independent()).collect()
}

fn conflicting(count: usize) -> Vec<Batch> {
    let mut random = RandomBatches::new(4);
    (0..count).map(|_| random.conflicting()).collect()
}

const PARALLEL: &[(&str, &str)] = &[("--services-strategy", "parallel")];
const PIPELINE: &[(&str, &str)] =
    &[("--services-strategy", "pipeline"), ("--ledger-keeps-order", "true")];

/// Has as many batches accepted as may be, and more that wait.
fn with_many_under_way() -> (SlowLedger, BatchServer) {
    let test = SlowLedger::new(independent(5 * MANY), PARALLEL, |ledger| ledger);
    let server = test.serve();
    test.submit(&server);
    test.wait_until_many_are_pending(&server);
    (test, server)
}

#[test]
fn batches_under_way_survive_a_killed_server() {
    let (test, server) = with_many_under_way();
    server.process.kill();
    let server = test.serve();
    test.wait_until_ended();
    server.stop();
    assert_eq!(test.count_applied(), test.batches.len());
    assert!(test.batches.iter().all(|batch| test.times_received(batch) == 1), "none is sent again");
}

#[test]
fn batches_that_a_node_has_lost_are_sent_again() {
    let (test, server) = with_many_under_way();
    test.harness.ledger.restart();
    wait_until("they were sent again", || {
        test.batches.iter().filter(|batch| test.times_received(batch) == 2).count() == MANY
    });
    test.wait_until_ended();
    server.stop();
    assert_eq!(test.count_applied(), test.batches.len());
}

/// Each batch changes what the one before has written, so another order leaves another state.
#[test]
fn tail_that_a_node_has_lost_is_sent_again_in_order() {
    let test = SlowLedger::new(conflicting(80), PIPELINE, LedgerSimBuilder::keeps_order);
    let server = test.serve();
    test.submit(&server);
    test.wait_until_pending(FIRST);
    test.harness.ledger.restart();
    wait_until("they were sent again", || {
        test.batches.iter().filter(|batch| test.times_received(batch) >= 2).count() == FIRST
    });
    test.wait_until_pending(FIRST);
    let new = &test.batches[FIRST..];
    assert!(new.iter().all(|batch| test.times_received(batch) == 0), "nothing new came before");
    test.execute();
    test.wait_until_ended();
    server.stop();
}

#[test]
fn pipeline_is_in_order_after_a_killed_server() {
    let test = SlowLedger::new(conflicting(80), PIPELINE, LedgerSimBuilder::keeps_order);
    let server = test.serve();
    test.submit(&server);
    test.wait_until_pending(FIRST);
    server.process.kill();
    let server = test.serve();
    test.wait_until_ended();
    server.stop();
    assert!(test.batches.iter().all(|batch| test.times_received(batch) == 1), "none is sent again");
}
