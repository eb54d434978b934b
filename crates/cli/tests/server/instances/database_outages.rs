use std::process::Child;

use diesel::{PgConnection, QueryableByName, RunQueryDsl, sql_query, sql_types::BigInt};
use grid_batch_test_postgres::{RestartablePostgres, StopMode};
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
            standby.set(Some(start_standby(postgres)));
            postgres.stop(StopMode::Immediate);
        },
        |postgres| promote(postgres, standby.take().unwrap()),
    );
}

/// Starts a synchronous standby: from then on the server commits nothing without it.
fn start_standby(postgres: &RestartablePostgres) -> Child {
    let (directory, command) =
        (postgres.directory().display().to_string(), postgres.start_command());
    let (bin, _) = command.split_once("/postgres \"").unwrap();
    let backup = format!(
        "{bin}/pg_basebackup -D {directory}/standby -R -X stream -c fast -h {directory} -p 5432 \
         -U postgres && mkdir {directory}/standby-socket"
    );
    assert!(postgres.spawn_shell(&backup).wait().unwrap().success());
    // Its socket is in another directory until it is promoted.
    let standby_command =
        command.replace(&format!("{directory}/data"), &format!("{directory}/standby")).replace(
            &format!("\"-k\" \"{directory}\""),
            &format!("\"-k\" \"{directory}/standby-socket\""),
        );
    assert_ne!(standby_command, command);
    let child = postgres.spawn_shell(&format!("exec {standby_command}"));
    postgres.execute("alter system set synchronous_standby_names = '*'");
    postgres.execute("select pg_reload_conf()");
    wait_until("the standby is synchronous", || synchronous_standbys(postgres) == 1);
    child
}

fn synchronous_standbys(postgres: &RestartablePostgres) -> i64 {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let mut connection: PgConnection = postgres.connect_as_superuser().unwrap();
    let select = sql_query(
        "select count(*) as count from pg_stat_replication where sync_state in ('sync', 'quorum')",
    );
    select.get_result::<Count>(&mut connection).unwrap().count
}

/// Promotes the standby, with the socket of the stopped server.
fn promote(postgres: &RestartablePostgres, mut standby: Child) {
    let (directory, command) =
        (postgres.directory().display().to_string(), postgres.start_command());
    let stop = format!("kill -INT $(head -n 1 {directory}/standby/postmaster.pid)");
    assert!(postgres.spawn_shell(&stop).wait().unwrap().success());
    standby.wait().unwrap();
    let setting = "synchronous_standby_names = ''";
    let configure = format!("echo \"{setting}\" >> {directory}/standby/postgresql.auto.conf");
    assert!(postgres.spawn_shell(&configure).wait().unwrap().success());
    let promoted = command.replace(&format!("{directory}/data"), &format!("{directory}/standby"));
    postgres.replace_process(postgres.spawn_shell(&format!("exec {promoted}")));
    postgres.execute("select pg_promote()");
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
