//! Faults are shown within seconds: in the health, the metrics that alerts use, the log and `doctor`.

use std::time::{Duration, Instant};

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_test_postgres::{RestartablePostgres, StopMode, TestDatabase};
use grid_batch_test_support::{
    batches::{batch_ids, signed_batches},
    http::{request, send},
    wait::wait_until,
};
use serde_json::Value;

use crate::{
    harness::{BatchHarness, BatchServer},
    instances::group::InstanceGroup,
};

/// With time to spare on a busy machine.
const SOON: Duration = Duration::from_secs(8);

fn health(server: &BatchServer) -> Value {
    send(server.address, &request("GET", "/health", &[], b"")).unwrap().json()
}

/// Waits until a part has this status, and returns its reason. Prints how long that took.
#[track_caller]
fn wait_for(server: &BatchServer, part: &str, status: &str) -> String {
    let (started, mut health_now) = (Instant::now(), Value::Null);
    wait_until(&format!("{part} is {status}"), || {
        health_now = health(server);
        health_now["parts"][part]["status"] == status
    });
    let took = started.elapsed();
    println!("{part} was {status} after {took:.2?}: {}", health_now["parts"][part]["reason"]);
    assert!(took < SOON, "{took:?}");
    health_now["parts"][part]["reason"].as_str().unwrap_or_default().to_owned()
}

/// The sample of a metric with these labels.
fn sample(server: &BatchServer, name: &str) -> Option<f64> {
    let metrics = send(server.address, &request("GET", "/metrics", &[], b"")).unwrap().body;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.parse().ok()
}

const FULL: &str = "create function full_disk() returns trigger language plpgsql as
        'begin raise exception using errcode = ''53100'',
            message = ''could not extend file: No space left on device''; end';
    create trigger full_disk before insert on batch_payloads
        for each row execute function full_disk();";

#[test]
fn database_without_space_makes_the_intake_unhealthy() {
    let database = TestDatabase::create();
    let harness = BatchHarness::scabbard(1).with_database(database.url());
    let server = harness.serve();
    wait_for(&server, "intake", "ok");
    let mut other = PgConnection::establish(database.url()).unwrap();
    other.batch_execute(FULL).unwrap();
    let batches = signed_batches(&harness.services, 2);
    assert_eq!(server.post(&batches[..1]).unwrap().status, 503);
    let reason = wait_for(&server, "intake", "unhealthy");
    assert!(reason.ends_with("the database has no space left"), "{reason}");
    let ready = send(server.address, &request("GET", "/health/ready", &[], b"")).unwrap();
    assert_eq!(ready.status, 503, "{ready:?}");
    let failed = r#"grid_batch_health_number{part="intake",number="failed_commits"}"#;
    assert!(sample(&server, failed) >= Some(1.0));

    other.batch_execute("drop trigger full_disk on batch_payloads").unwrap();
    server.submit(&batches);
    wait_for(&server, "intake", "ok");
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn space_of_a_database_file_is_known() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    let free = r#"grid_batch_health_number{part="database",number="free_mebibytes"}"#;
    wait_until("the space is known", || sample(&server, free) > Some(0.0));
    let doctor = harness.run_command(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("its file system has"), "{doctor:?}");
    server.stop();
}

#[test]
fn survivor_counts_an_instance_that_was_killed() {
    const EXPIRIES: &[(&str, &str)] =
        &[("--claims-idle-expiry", "7s"), ("--claims-full-expiry", "7s")];
    const LOST: &str = "grid_batch_instances_lost_total";
    let group = InstanceGroup::new(2);
    let first = group.start_with("first", EXPIRIES);
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", 2);
    let second = group.start_with("second", EXPIRIES);
    let third = group.start_with("third", EXPIRIES);
    third.stop();
    wait_until("the metric exists", || sample(&second, LOST) == Some(0.0));
    first.process.kill();
    wait_until("the instance is counted", || sample(&second, LOST) == Some(1.0));
    group.harness.wait_until_all_committed(&group.batches(0));
    let output = second.stop_with("TERM");
    assert!(output.stderr.contains("another instance has stopped"), "{output:?}");
    assert!(output.stderr.contains("lost=first-"), "{output:?}");
}

#[test]
fn different_settings_of_instances_are_named() {
    let group = InstanceGroup::new(1);
    let first = group.start("first");
    wait_for(&first, "settings", "ok");
    let second = group.start_with("second", &[("--poll-hold-after", "7m")]);
    for (server, other) in [(&first, "second-"), (&second, "first-")] {
        let reason = wait_for(server, "settings", "degraded");
        for text in ["poll.hold_after", "\"7m\"", other] {
            assert!(reason.contains(text), "{text}: {reason}");
        }
    }
    let doctor = group.harness.run_command(&["doctor", "--poll-hold-after", "7m", "--json"]);
    assert!(doctor.stdout.contains("poll.hold_after is"), "{doctor:?}");
    let output = second.stop_with("TERM");
    assert!(output.stderr.contains("a setting must be equal on all instances"), "{output:?}");
    wait_for(&first, "settings", "ok");
    first.stop();
}

#[test]
fn client_whose_batches_are_all_invalid_is_shown() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.refuse(|_| Some("no".to_owned()));
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 10);
    server.submit(&batches);
    let reason = wait_for_reason(&server, "all ended as invalid");
    assert!(reason.contains("the last batches of 1 services"), "{reason}");
    harness.ledger.refuse(|_| None);
    server.submit(&signed_batches(&harness.services, 11)[10..]);
    wait_for(&server, "services", "ok");
    let output = server.stop_with("TERM");
    let line = format!("service={}", harness.services[0]);
    assert!(output.stderr.contains("have all ended as invalid"), "{output:?}");
    assert!(output.stderr.contains(&line), "{output:?}");
}

/// Waits until the part `services` says this, and returns its reason.
fn wait_for_reason(server: &BatchServer, text: &str) -> String {
    let mut reason = String::new();
    wait_until(text, || {
        let health = health(server);
        health["parts"]["services"]["reason"].as_str().unwrap_or_default().clone_into(&mut reason);
        reason.contains(text)
    });
    reason
}

#[test]
fn explanation_first_names_a_node_that_does_not_answer() {
    let harness = BatchHarness::scabbard(1);
    harness.ledger.freeze();
    let server = harness.serve();
    let batches = signed_batches(&harness.services, 1);
    server.submit(&batches);
    let works = format!("grid_batch_node_works{{node=\"{}\"}}", harness.ledger.url());
    wait_until("the node does not work", || sample(&server, &works) == Some(0.0));
    let path = format!("/v1/batches/{}/explain", batch_ids(&batches)[0].1);
    wait_until("the node is named first", || {
        let explanation = server.get(&path);
        let text = explanation["text"].as_str().unwrap_or_default();
        text.starts_with("The node ")
            && explanation["actions"].to_string().matches("end_").count() == 0
    });
    harness.ledger.thaw();
    harness.wait_until_all_committed(&batches);
    server.stop();
}

#[test]
fn pause_of_all_services_is_shown() {
    let harness = BatchHarness::scabbard(1);
    let server = harness.serve();
    wait_for(&server, "services", "ok");
    let pause = harness.run_command(&["pause", "--all", "--reason", "a test"]);
    assert_eq!(pause.exit_code, Some(0), "{pause:?}");
    let reason = wait_for(&server, "services", "degraded");
    assert!(reason.contains("an operator has paused all services"), "{reason}");
    server.stop();
}

#[test]
fn log_says_that_a_database_hangs_and_sums_up_failures() {
    let postgres = RestartablePostgres::start(100);
    let harness = BatchHarness::scabbard(2).with_database(&postgres.url());
    let server = harness.serve();
    wait_for(&server, "database", "ok");
    let frozen = postgres.freeze();
    wait_for(&server, "database", "unhealthy");
    wait_until("the outage is three seconds old", || {
        health(&server)["parts"]["database"]["reason"].to_string().contains("for 3 s")
    });
    drop(frozen);
    wait_for(&server, "database", "ok");
    postgres.stop(StopMode::Fast);
    wait_for(&server, "database", "unhealthy");
    wait_until("connections have failed for five seconds", || {
        health(&server)["parts"]["database"]["reason"].to_string().contains("for 5 s")
    });
    postgres.start_again();
    wait_for(&server, "database", "ok");
    let output = server.stop_with("TERM");
    assert!(output.stderr.contains("the database hangs"), "{output:?}");
    let failed = "a connection to the database failed";
    let lines = output.stderr.lines().filter(|line| line.contains(failed)).count();
    assert!((1..30).contains(&lines), "{lines}: {output:?}");
    assert!(output.stderr.contains(&format!("{failed}: repeated")), "{output:?}");
}
