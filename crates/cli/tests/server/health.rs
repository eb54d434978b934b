//! `/health`: it answers at once, whatever does not work, and says which part does not.

use std::{
    thread,
    time::{Duration, Instant},
};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_postgres::{RestartablePostgres, StopMode, TestDatabase};
use grid_batch_test_support::{
    batches::{batch_ids, signed_batches},
    http::{Response, request, send, send_with_timeout},
    wait::wait_until,
};

use crate::harness::{BatchHarness, BatchServer};

/// An answer takes less than this on a busy machine; a healthy one takes milliseconds.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Within this time a part that does not work must be shown, with time to spare on a busy machine.
const SOON: Duration = Duration::from_secs(8);

/// The health, which must be answered at once.
fn health(server: &BatchServer) -> Response {
    send_with_timeout(server.address, &request("GET", "/health", &[], b""), AT_ONCE).unwrap()
}

/// Waits until a part has this status. Prints how long that took, and the longest answer.
#[track_caller]
fn wait_for_part(server: &BatchServer, part: &str, status: &str) -> Response {
    let (started, mut longest) = (Instant::now(), Duration::ZERO);
    let mut last = health(server);
    wait_until(&format!("{part} is {status}"), || {
        let asked = Instant::now();
        last = health(server);
        longest = longest.max(asked.elapsed());
        last.json()["parts"][part]["status"] == status
    });
    println!("{part} was {status} after {:.2?}, longest answer {longest:.2?}", started.elapsed());
    last
}

fn assert_names_no_host(health: &Response) {
    assert!(!health.body.contains("127.0.0.1") && !health.body.contains("://"), "{health:?}");
}

#[test]
fn server_without_problems_is_ok_in_every_part() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 4);
    server.submit(&batches);
    harness.wait_until_all_committed(&batches);
    wait_for_part(&server, "services", "ok");
    let response = health(&server);
    let json = response.json();
    assert_eq!((response.status, &json["status"]), (200, &"ok".into()), "{json}");
    assert_eq!(json["reasons"], serde_json::Value::Null);
    for part in ["database", "claims", "ledger", "intake", "services", "events"] {
        assert_eq!(json["parts"][part]["status"], "ok", "{part}: {json}");
    }
    server.stop();
}

#[test]
fn dead_ledger_is_shown_and_intake_stays_ready() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    wait_for_part(&server, "ledger", "ok");
    harness.ledger.kill();
    server.submit(&signed_batches(&harness.services, 2));
    let response = wait_for_part(&server, "ledger", "degraded");
    assert_eq!((response.status, &response.json()["status"]), (200, &"degraded".into()));
    let reason = format!("{} has not answered for", harness.ledger.url());
    assert!(response.body.contains(&reason), "{response:?}");
    harness.ledger.start_again();
    wait_for_part(&server, "ledger", "ok");
    harness.wait_until_all_committed(&signed_batches(&harness.services, 2));
    server.stop();
}

#[test]
fn refused_submissions_are_shown() {
    let harness = BatchHarness::scabbard(2);
    let server = harness.serve();
    harness.ledger.inject(Fault::Unauthorized, When::Always);
    server.submit(&signed_batches(&harness.services, 4));
    let response = wait_for_part(&server, "services", "degraded");
    assert_eq!(response.status, 200);
    wait_until("both services are shown as failing", || {
        health(&server).json()["parts"]["services"]["failing"] == 2
    });
    server.stop();
}

#[test]
fn held_services_are_shown() {
    let harness = BatchHarness::scabbard(3);
    harness.ledger.freeze();
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    let store = harness.store();
    for (service, id) in batch_ids(&batches) {
        store.hold_batch(&service, &id, "a test").unwrap();
    }
    wait_until("three services are shown as held", || {
        health(&server).json()["parts"]["services"]["held"] == 3
    });
    let response = health(&server);
    assert_eq!((response.status, &response.json()["status"]), (200, &"degraded".into()));
    assert!(response.json()["reasons"].to_string().contains("held"), "{response:?}");
    server.stop_with("TERM");
}

#[test]
fn stopped_database_is_shown_soon() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = harness.serve();
    let stopped = Instant::now();
    postgres.stop(StopMode::Fast);
    wait_until("the health is 503", || health(&server).status == 503);
    println!("503 after {:.2?}", stopped.elapsed());
    assert!(stopped.elapsed() < SOON, "{:?}", stopped.elapsed());
    let response = wait_for_part(&server, "database", "unhealthy");
    assert_eq!(response.json()["status"], "unhealthy");
    assert_names_no_host(&response);
    postgres.start_again();
    wait_until("the health is 200", || health(&server).status == 200);
    server.stop();
}

#[test]
fn frozen_database_is_shown_behind_sixty_requests() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = harness.serve();
    wait_for_part(&server, "database", "ok");
    let frozen = postgres.freeze();
    let started = Instant::now();
    let id = batch_ids(&signed_batches(&harness.services, 1))[0].1;
    let path = format!("/batch_statuses?id={id}");
    thread::scope(|scope| {
        for _ in 0..60 {
            scope.spawn(|| send(server.address, &request("GET", &path, &[], b"")));
        }
        let response = wait_for_part(&server, "database", "unhealthy");
        assert_eq!(response.status, 503);
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    });
    drop(frozen);
    wait_for_part(&server, "database", "ok");
    server.stop();
}

#[test]
fn locked_row_is_shown() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 2);
    server.submit(&batches[..1]);
    harness.wait_until_all_committed(&batches[..1]);
    let mut other = PgConnection::establish(database.url()).unwrap();
    other.batch_execute("begin; select 1 from services for update").unwrap();
    thread::scope(|scope| {
        let posted = scope.spawn(|| server.post(&batches[1..]));
        let response = wait_for_part(&server, "services", "degraded");
        assert_eq!(response.status, 200);
        assert_eq!(response.json()["parts"]["services"]["locked"], 1);
        other.batch_execute("commit").unwrap();
        // It was refused unless the lock ended first, so it is sent again.
        let _ = posted.join().unwrap();
    });
    server.submit(&batches[1..]);
    wait_for_part(&server, "services", "ok");
    server.stop();
}
