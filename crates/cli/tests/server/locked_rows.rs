//! Rows that a transaction of another program keeps locked.

use std::{
    slice, thread,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::BatchState;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer, count_in_state};

const SERVICES: usize = 20;
/// Much less than the lock timeout of the store, and much more than the lock limit of a group.
const SHORT: Duration = Duration::from_secs(8);

struct LockedRow {
    harness: BatchHarness,
    database: TestDatabase,
}

impl LockedRow {
    fn new() -> Self {
        let database = TestDatabase::create();
        let harness = BatchHarness::scabbard(SERVICES).with_database(database.url());
        Self { harness, database }
    }

    /// The batch with this number for each service. The first one is that of the locked service.
    fn batches(&self, number: usize) -> Vec<SignedBatch> {
        self.harness.services.iter().map(|service| signed_batch(service, number)).collect()
    }

    /// Locks the rows of the first service in this table until the connection is dropped.
    fn lock(&self, table: &str) -> PgConnection {
        let mut connection = PgConnection::establish(self.database.url()).unwrap();
        let service = &self.harness.services[0];
        let lock = format!("begin; select from {table} where service_id = '{service}' for update");
        connection.batch_execute(&lock).unwrap();
        connection
    }

    fn wait_until_committed(&self, count: usize) {
        let store = self.harness.store();
        wait_until(&format!("{count} batches are committed"), || {
            count_in_state(&store, BatchState::Committed) == count
        });
    }
}

/// What is to be recorded about a service with a locked row waits, and nothing else does.
fn assert_others_end(table: &str) {
    let test = LockedRow::new();
    let server = test.harness.serve();
    test.harness.ledger.freeze();
    server.submit(&test.batches(0));
    let store = test.harness.store();
    wait_until("all batches are with the submitter", || {
        count_in_state(&store, BatchState::Submitting) == SERVICES
    });
    let lock = test.lock(table);
    let started = Instant::now();
    test.harness.ledger.thaw();
    test.wait_until_committed(SERVICES - 1);
    let took = started.elapsed();
    println!("{table}: the batches of free services were committed within {took:.2?}");
    assert!(took < SHORT, "{took:?}");

    server.process.wait_for_log("is locked by another transaction");
    drop(lock);
    test.harness.wait_until_all_committed(&test.batches(0));
    server.process.wait_for_log("is not locked any more");
    let warnings = server.process.stderr().matches("is locked by another transaction").count();
    assert_eq!(warnings, 1, "{}", server.process.stderr());
    server.stop();
}

#[test]
fn locked_service_row_stops_no_other_service() {
    assert_others_end("services");
}

#[test]
fn locked_lane_stops_no_other_service() {
    assert_others_end("lanes");
}

#[test]
fn locked_batch_row_stops_no_other_service() {
    assert_others_end("batches");
}

#[test]
fn intake_of_free_services_does_not_wait() {
    let test = LockedRow::new();
    let server = test.harness.serve();
    server.submit(&test.batches(0));
    test.harness.wait_until_all_committed(&test.batches(0));

    let lock = test.lock("services");
    let batches = test.batches(1);
    let (locked, free) = batches.split_first().unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        let refused = scope.spawn(|| {
            let response = server.post(slice::from_ref(locked)).unwrap();
            (response, started.elapsed())
        });
        let longest = free.iter().map(|batch| time_to_submit(&server, batch)).max().unwrap();
        println!("a request for a free service took {longest:.2?} at most");
        assert!(longest < SHORT / 2, "{longest:?}");
        let (response, took) = refused.join().unwrap();
        println!("the request for the locked service was refused after {took:.2?}");
        assert_eq!(response.status, 503, "{response:?}");
        assert!(took < SHORT, "{took:?}");
    });
    test.wait_until_committed(2 * SERVICES - 1);
    drop(lock);
    server.submit(slice::from_ref(locked));
    test.harness.wait_until_all_committed(&[test.batches(0), batches].concat());
    server.stop();
}

fn time_to_submit(server: &BatchServer, batch: &SignedBatch) -> Duration {
    let started = Instant::now();
    server.submit(slice::from_ref(batch));
    started.elapsed()
}

/// A service with a locked row can be taken over later than the others.
#[test]
fn locked_lane_delays_no_takeover_of_others() {
    let test = LockedRow::new();
    let server = test.harness.serve();
    server.submit(&test.batches(0));
    test.harness.wait_until_all_committed(&test.batches(0));
    server.stop();

    let lock = test.lock("lanes");
    let started = Instant::now();
    let server = test.harness.serve();
    server.submit(&test.batches(1)[1..]);
    test.wait_until_committed(2 * SERVICES - 1);
    let took = started.elapsed();
    println!("the services that are free were taken over and used within {took:.2?}");
    assert!(took < SHORT, "{took:?}");
    drop(lock);
    server.submit(&test.batches(1)[..1]);
    test.harness.wait_until_all_committed(&[test.batches(0), test.batches(1)].concat());
    server.stop();
}
