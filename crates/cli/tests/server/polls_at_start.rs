//! A batch that was under way when its server ended is polled at once by the next one.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::{ManualClock, Timestamp};
use grid_batch_ledger_sim::LedgerSimBuilder;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const CLAIMED: &str = "services claimed";

/// Servers of one database, and a ledger that commits when its clock is advanced.
struct Scenario {
    harness: BatchHarness,
    clock: Arc<ManualClock>,
    database: TestDatabase,
    batches: Vec<SignedBatch>,
}

impl Scenario {
    fn new(
        harness: impl FnOnce(&dyn Fn(LedgerSimBuilder) -> LedgerSimBuilder) -> BatchHarness,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let ledger_clock = Arc::clone(&clock);
        let harness =
            harness(&move |ledger| ledger.clock(Arc::<ManualClock>::clone(&ledger_clock)));
        let database = TestDatabase::create();
        let harness = harness.with_database(database.url());
        let batches = signed_batches(&harness.services, 1);
        Self { harness, clock, database, batches }
    }

    fn serve(&self, name: &str) -> BatchServer {
        self.harness.serve_with(&[
            ("--claims-name", name),
            ("--claims-idle-expiry", "3s"),
            ("--claims-full-expiry", "8s"),
            ("--testing-longest-interval", "1h"),
        ])
    }

    /// Submits a batch for each service, waits until they are polled as pending, and makes them so old
    /// that they are polled seldom.
    fn submit(&self, server: &BatchServer) {
        server.submit(&self.batches);
        let store = self.harness.store();
        wait_until("the batches were polled as pending", || {
            self.batches.iter().all(|batch| {
                let stored = store.find(&batch.batch_id).unwrap().remove(0);
                stored.progress.state == BatchState::Pending && stored.checked_at.is_some()
            })
        });
        let mut database = PgConnection::establish(self.database.url()).unwrap();
        let hour = Duration::from_hours(1).as_micros();
        let age = format!("update lanes set submitted_at = submitted_at - {hour} where busy");
        database.batch_execute(&age).unwrap();
    }

    fn commit_at_the_ledger(&self) {
        self.clock.advance(Duration::from_secs(1));
        wait_until("the ledger has applied the first step", || {
            self.clock.advance(Duration::from_secs(1));
            self.harness.ledger.record().len() == self.batches.len()
        });
    }

    fn assert_ends_soon_after_the_claim(&self, server: &BatchServer) {
        server.process.wait_for_log(CLAIMED);
        let claimed = Instant::now();
        let store = self.harness.store();
        wait_until("the batches are committed", || {
            count_in_state(&store, BatchState::Committed) == self.batches.len()
        });
        println!("committed {:.2?} after the claim", claimed.elapsed());
        assert!(claimed.elapsed() < Duration::from_secs(5), "{:?}", claimed.elapsed());
    }

    fn assert_restarted_server_polls_at_once(&self) {
        let server = self.serve("first");
        self.submit(&server);
        server.process.kill();
        self.commit_at_the_ledger();
        let server = self.serve("first");
        self.assert_ends_soon_after_the_claim(&server);
        server.stop();
    }
}

#[test]
fn restarted_server_polls_at_once_on_sawtooth() {
    let scenario = Scenario::new(|configure| BatchHarness::sawtooth_with(configure));
    scenario.assert_restarted_server_polls_at_once();
}

#[test]
fn restarted_server_polls_at_once_on_scabbard() {
    let scenario = Scenario::new(|configure| BatchHarness::scabbard_with(3, configure));
    scenario.assert_restarted_server_polls_at_once();
}

#[test]
fn takeover_polls_at_once() {
    let scenario = Scenario::new(|configure| BatchHarness::scabbard_with(3, configure));
    let first = scenario.serve("first");
    scenario.submit(&first);
    let second = scenario.serve("second");
    first.process.kill();
    scenario.commit_at_the_ledger();
    scenario.assert_ends_soon_after_the_claim(&second);
    second.stop();
}
