//! A database that answers so late that what it returned must not be sent any more.

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::BatchHarness;

/// Makes the database answer three seconds after it has taken a round: longer than `total_limit`.
const DELAY_ROUNDS: &str = "
    create function answer_late() returns trigger language plpgsql as
        $$ begin perform pg_sleep(3); return null; end $$;
    create constraint trigger answer_late after update on lanes
        deferrable initially deferred for each row
        when (new.submitted and not old.submitted) execute function answer_late();";

#[test]
fn round_that_the_database_returns_late_is_not_sent() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let server = harness.serve();
    let mut connection = PgConnection::establish(database.url()).unwrap();
    connection.batch_execute(DELAY_ROUNDS).unwrap();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let (service, id) = (&batches[0].service_id, &batches[0].batch_id);
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
    harness.wait_until_all_committed(&batches);
    server.stop();
}
