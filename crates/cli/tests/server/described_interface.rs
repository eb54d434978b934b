//! Requests made from the description of the interface.

use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{
    batches::signed_batches, schemathesis::assert_interface_is_as_described,
};

use crate::harness::BatchHarness;

fn check(harness: &BatchHarness) {
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    let (batch, service) = (&batches[0].batch_id, &harness.services[0]);
    let configuration =
        format!("[parameters]\n'path.id' = ['{batch}', '{service}', 'x']\n'query.wait' = '0'\n");
    assert_interface_is_as_described(server.address, &configuration);
    server.stop();
}

#[test]
fn interface_of_batches_on_sqlite_is_as_described() {
    check(&BatchHarness::scabbard(1));
}

#[test]
fn interface_of_batches_on_postgres_is_as_described() {
    let database = TestDatabase::create();
    check(&BatchHarness::sawtooth().with_database(database.url()));
}
