//! Names of services in the database that are no ids of services.

use diesel::{Connection, PgConnection, SqliteConnection, connection::SimpleConnection};
use grid_batch_test_postgres::TestDatabase;
use grid_batch_test_support::{batches::signed_batches, wait::wait_until};

use crate::harness::BatchHarness;

const TABLES: [&str; 5] = ["services", "service_id_claims", "lanes", "batches", "new_services"];

/// One of two services, each with an open batch, gets a name that cannot be read. The server starts, names it in
/// log and health, lists the batches of the other one, and ends them.
fn assert_others_go_on(harness: &BatchHarness, execute: impl FnOnce(&str)) {
    let server = harness.serve();
    let all = ["pause", "--all", "--reason", "test"];
    assert_eq!(harness.run_command(&all).exit_code, Some(0));
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    server.stop();
    let bad = format!(
        "update {{}} set service_id = 'un\u{7}readable' where service_id = '{}';",
        harness.services[0]
    );
    execute(&TABLES.map(|table| bad.replace("{}", table)).concat());

    let server = harness.serve();
    let resume = ["resume", "--all", "--reason", "test"];
    assert_eq!(harness.run_command(&resume).exit_code, Some(0));
    wait_until("the batch of the other service is committed", || {
        server.get("/v1/batches?state=committed")["data"].as_array().unwrap().len() == 1
    });
    assert_eq!(server.get("/v1/batches")["data"].as_array().unwrap().len(), 1);
    let events = server.get("/v1/events?limit=1000")["data"].clone();
    let ids = events.as_array().unwrap().iter().map(|event| event["service_id"].clone());
    assert!(ids.clone().count() > 0 && ids.clone().all(|id| id == harness.services[1]), "{events}");
    wait_until("the health names the service", || {
        let services = server.get("/health")["parts"]["services"].clone();
        services["status"] == "degraded"
            && services["reason"].as_str().unwrap().contains("readable")
    });
    let log = server.process.stderr();
    assert_eq!(
        log.matches("the name of a service in the database cannot be read").count(),
        1,
        "{log}"
    );
    server.stop();
}

#[test]
fn unreadable_name_stops_no_other_service_on_sqlite() {
    let harness = BatchHarness::scabbard(2);
    assert_others_go_on(&harness, |sql| {
        let file = harness.database_file();
        let mut database = SqliteConnection::establish(file.to_str().unwrap()).unwrap();
        database.batch_execute(&format!("pragma foreign_keys = off; {sql}")).unwrap();
    });
}

#[test]
fn unreadable_name_stops_no_other_service_on_postgres() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(2).with_database(database.url());
    assert_others_go_on(&harness, |sql| {
        let mut database = PgConnection::establish(database.url()).unwrap();
        database.batch_execute(&format!("set session_replication_role = replica; {sql}")).unwrap();
    });
}
