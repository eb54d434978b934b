//! A database that answers so late that what it returned must not be sent any more.

use std::slice;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batches},
    wait::{wait_for, wait_until},
};

use crate::harness::{BatchHarness, BatchServer};

/// Makes the database answer three seconds after it has taken a round: longer than `total_limit`.
const DELAY_ROUNDS: &str = "
    create function answer_late() returns trigger language plpgsql as
        $$ begin perform pg_sleep(3); return null; end $$;
    create constraint trigger answer_late after update on lanes
        deferrable initially deferred for each row
        when (new.submitted and not old.submitted) execute function answer_late();";

/// Submits the batch, has the database answer late when it hands the batch out, and in time again after it was given
/// back.
fn give_back(server: &BatchServer, harness: &BatchHarness, database: &str, batch: &SignedBatch) {
    let mut connection = PgConnection::establish(database).unwrap();
    connection.batch_execute(DELAY_ROUNDS).unwrap();
    server.submit(slice::from_ref(batch));
    let (service, id) = (&batch.service_id, &batch.batch_id);
    let store = harness.store();
    wait_until("the batch was taken and given back, or sent", || {
        let details = store.details(service, id).unwrap().unwrap();
        !details.failed_attempts.is_empty() || harness.ledger.times_received(id) > 0
    });
    assert_eq!(harness.ledger.times_received(id), 0);
    let details = store.details(service, id).unwrap().unwrap();
    let error = details.failed_attempts[0].error.as_deref();
    assert_eq!(error, Some("given back before it was sent"));
    connection.batch_execute("drop trigger answer_late on lanes").unwrap();
}

#[test]
fn round_that_the_database_returns_late_is_not_sent() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    give_back(&server, &harness, database.url(), &batches[0]);
    harness.wait_until_all_committed(&batches);
    server.stop();
}

/// No operator is asked: what was given back was not sent.
#[test]
fn request_that_is_lost_after_a_late_round_is_sent_again() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    harness.ledger.inject(Fault::ResetBefore, When::Next(1));
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    give_back(&server, &harness, database.url(), &batches[0]);
    let store = harness.store();
    let (service, id) = (&batches[0].service_id, &batches[0].batch_id);
    let ended = wait_for("the batch has ended", || {
        let stored = store.details(service, id).unwrap().unwrap().batch;
        stored.ended_at.map(|_| stored)
    });
    assert_eq!(ended.progress.state, BatchState::Committed);
    server.stop();
}
