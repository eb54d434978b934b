use grid_batch_test_postgres::{RestartablePostgres, Standby, StopMode};
use grid_batch_test_support::{
    batches::SignedBatch,
    http::{Response, request, send},
    wait::{wait_for, wait_until},
};

use super::group::InstanceGroup;
use crate::harness::BatchServer;

const SERVICES: usize = 10;

fn health(instance: &BatchServer) -> Response {
    let request = request("GET", "/health", &[], b"");
    wait_for("the health is reported", || send(instance.address, &request).ok())
}

/// Asserts that instances report an outage of the database, and continue after it.
fn assert_survived(
    begin_outage: impl Fn(&RestartablePostgres),
    end_outage: impl Fn(&RestartablePostgres),
) {
    let postgres = RestartablePostgres::start(100);
    let group = InstanceGroup::with_database(postgres.url(), SERVICES);
    let instances = ["first", "second"].map(|name| group.start(name));
    instances[0].submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));

    begin_outage(&postgres);
    for instance in &instances {
        wait_until("an instance is unhealthy", || health(instance).status == 503);
        let response = health(instance).json();
        assert_eq!(response["status"], "unhealthy", "{response}");
        assert!(response["reasons"].to_string().contains("database"), "{response}");
        let stderr = instance.process.stderr();
        assert!(
            stderr.contains("WARN") || stderr.contains("ERROR"),
            "no warning is logged: {stderr}"
        );
    }
    end_outage(&postgres);
    instances.iter().for_each(|instance| {
        wait_until("an instance is healthy again", || health(instance).status == 200);
    });
    instances[1].submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    instances.into_iter().for_each(BatchServer::stop);
}

#[test]
fn instances_continue_after_a_database_restart() {
    assert_survived(|postgres| postgres.stop(StopMode::Fast), RestartablePostgres::start_again);
}

#[test]
fn instances_continue_after_refused_connections() {
    assert_survived(
        RestartablePostgres::refuse_connections,
        RestartablePostgres::accept_connections,
    );
}

#[test]
fn instances_continue_with_a_promoted_standby() {
    let standby = std::cell::Cell::new(None);
    assert_survived(
        |postgres| {
            standby.set(Some(Standby::start_synchronous(postgres)));
            postgres.stop(StopMode::Immediate);
        },
        |postgres| standby.take().unwrap().promote(postgres),
    );
}

#[test]
fn serialization_failures_are_retried() {
    let postgres = RestartablePostgres::start(100);
    postgres.execute("alter database grid set default_transaction_isolation = 'serializable'");
    let group = InstanceGroup::with_database(postgres.url(), SERVICES);
    let instances = ["first", "second"].map(|name| group.start(name));
    let lists: Vec<_> = (0..4).map(|number| group.batches(number)).collect();
    for (number, list) in lists.iter().enumerate() {
        submit_with_retries(&instances[number % 2], list);
    }
    group.harness.wait_until_all_committed(&lists.concat());
    instances.into_iter().for_each(BatchServer::stop);
}

/// Posts each batch until it is accepted. The server may answer 503 meanwhile.
fn submit_with_retries(instance: &BatchServer, batches: &[SignedBatch]) {
    for batch in batches {
        wait_until("a batch is accepted", || {
            let response = instance.post(std::slice::from_ref(batch)).unwrap();
            assert!([202, 503].contains(&response.status), "{response:?}");
            response.status == 202
        });
    }
}
