use std::{
    io, slice,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use diesel::{
    PgConnection, QueryableByName, RunQueryDsl, connection::SimpleConnection, sql_query,
    sql_types::BigInt,
};
use grid_batch_test_support::{
    batches::{SignedBatch, encode_batch_list},
    http::{Response, request, send},
    wait::wait_until,
};

use super::group::{EXPIRY_1, InstanceGroup, SCHEDULING_SLACK, measure_until};
use crate::harness::{BatchServer, count_all};

const SERVICES: usize = 10;

/// Starts an instance that may wait for a lock much longer than the leases of the group last.
fn start(group: &InstanceGroup, name: &str) -> BatchServer {
    let mut flags = InstanceGroup::flags(name, &[]);
    flags.retain(|(flag, _)| *flag != "--testing-lock-timeout");
    group.harness.serve_with(&flags)
}

/// Row locks of a process that is frozen in the middle of a transaction end with its idle expiry.
#[test]
fn instance_frozen_in_a_transaction_stalls_no_other() {
    let group = InstanceGroup::new(SERVICES);
    let first = start(&group, "first");
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let second = start(&group, "second");

    let frozen = Instant::now();
    freeze_in_transaction(&group, &first);
    let took = measure_until("every service is taken over", frozen, || {
        group.claimed_by("second") == SERVICES
    });
    assert!(took < 2 * (EXPIRY_1 + SCHEDULING_SLACK), "{took:?}");
    let started = Instant::now();
    second.submit(&group.batches(1));
    println!("{SERVICES} requests were accepted within {:.2?}", started.elapsed());
    second.submit(&group.batches(2));
    let all = [group.batches(0), group.batches(1), group.batches(2)].concat();
    group.harness.wait_until_all_committed(&all);

    first.process.signal("CONT");
    wait_until("the first instance has a new run", || !group.active_runs("first").is_empty());
    second.stop();
    group.wait_until_claimed_by("first", SERVICES);
    first.submit(&group.batches(3));
    group.harness.wait_until_all_committed(&[all, group.batches(3)].concat());
    assert_eq!(count_all(&group.harness.store()), 4 * SERVICES);
    first.stop();
}

/// Intake at an instance goes on while another one is frozen with the locks of a service.
#[test]
fn frozen_transaction_delays_intake_elsewhere_briefly() {
    let group = InstanceGroup::new(SERVICES);
    let first = start(&group, "first");
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    let second = start(&group, "second");
    freeze_in_transaction(&group, &first);

    let started = Instant::now();
    let batches = group.batches(1);
    let locked_service = post_in_background(&second, &batches[SERVICES - 1]);
    for batch in &batches[..SERVICES - 1] {
        second.submit(slice::from_ref(batch));
    }
    let took = started.elapsed();
    println!("the requests for free services were accepted within {took:.2?}");
    assert!(took < EXPIRY_1 + SCHEDULING_SLACK, "{took:?}");
    let locked_service = locked_service.join().unwrap().unwrap();
    assert!([202, 503].contains(&locked_service.status), "{locked_service:?}");
    second.submit(&batches[SERVICES - 1..]);
    group.harness.wait_until_all_committed(&[group.batches(0), batches].concat());
    second.stop();
    first.process.kill();
}

/// Freezes an instance in a transaction that has locked the last service.
fn freeze_in_transaction(group: &InstanceGroup, instance: &BatchServer) {
    let batch = group.batches(1).pop().unwrap();
    let mut database = group.connect();
    wait_until("the instance is frozen in a transaction", || {
        let lock = format!(
            "begin; select from services where service_id = '{}' for update",
            batch.service_id
        );
        database.batch_execute(&lock).unwrap();
        let response = post_in_background(instance, &batch);
        wait_until("a transaction waits for the service", || {
            count(&mut database, TRANSACTIONS_BEHIND_THIS) > 0 || response.is_finished()
        });
        instance.process.signal("STOP");
        database.batch_execute("commit").unwrap();
        let is_frozen = is_locked_soon(&mut database);
        if !is_frozen {
            instance.process.signal("CONT");
            let _ = response.join().unwrap();
        }
        is_frozen
    });
}

/// Whether the transaction that waited gets the lock.
fn is_locked_soon(database: &mut PgConnection) -> bool {
    let started = Instant::now();
    let mut is_locked = false;
    while !is_locked && started.elapsed() < Duration::from_secs(1) {
        is_locked = count(database, LOCKED_SERVICES) > 0;
    }
    is_locked
}

/// The response of an instance that is frozen never comes.
fn post_in_background(
    instance: &BatchServer,
    batch: &SignedBatch,
) -> JoinHandle<io::Result<Response>> {
    let path = format!("/batches?service_id={}", batch.service_id);
    let headers = ["content-type: application/octet-stream"];
    let request = request("POST", &path, &headers, &encode_batch_list(slice::from_ref(batch)));
    let address = instance.address;
    thread::spawn(move || send(address, &request))
}

const TRANSACTIONS_BEHIND_THIS: &str = "select count(*) from pg_stat_activity
    where pg_backend_pid() = any(pg_blocking_pids(pid))";
const LOCKED_SERVICES: &str = "select (select count(*) from services) - count(*) as count
    from (select from services for update skip locked) as unlocked";

fn count(database: &mut PgConnection, sql: &str) -> i64 {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    sql_query(sql).load::<Count>(database).unwrap().remove(0).count
}
