//! A database that restarts, refuses connections, runs out of them, and is used by others.

use std::time::Duration;

use diesel::{PgConnection, connection::SimpleConnection};
use grid_batch_test_postgres::StopMode;

use crate::{
    harness::ChaosHarness,
    seeded_random::{SeededRandom, ShuffledItems},
};

#[derive(Debug, Clone, Copy)]
enum DatabaseFault {
    Restart(StopMode),
    TerminateConnections,
    RefuseConnections,
    ExhaustConnections,
    LongTransaction,
    HeavyQueries,
    LockedRows,
}

pub fn run(harness: &ChaosHarness, mut random: SeededRandom) {
    let mut faults = ShuffledItems::new(&[
        DatabaseFault::Restart(StopMode::Immediate),
        DatabaseFault::Restart(StopMode::Fast),
        DatabaseFault::TerminateConnections,
        DatabaseFault::RefuseConnections,
        DatabaseFault::ExhaustConnections,
        DatabaseFault::LongTransaction,
        DatabaseFault::HeavyQueries,
        DatabaseFault::LockedRows,
        DatabaseFault::TerminateConnections,
    ]);
    while harness.stop_faults.sleep(random.millis(800..3_000)) {
        let duration = random.millis(100..2_000);
        match faults.next(&mut random) {
            DatabaseFault::Restart(mode) => {
                harness.events.count("database restarted");
                harness.events.outage(|| restart(harness, mode, duration / 2));
            }
            DatabaseFault::TerminateConnections => {
                harness.events.count("database connections terminated");
                harness.postgres.terminate_connections();
            }
            DatabaseFault::RefuseConnections => {
                harness.events.count("database connections refused for a while");
                harness.events.outage(|| refuse_connections(harness, duration));
            }
            DatabaseFault::ExhaustConnections => {
                harness.events.count("database connections exhausted for a while");
                harness.events.outage(|| exhaust_connections(harness, duration));
            }
            DatabaseFault::LongTransaction => {
                harness.events.count("long transaction open for a while");
                hold_transaction_open(harness, duration * 2);
            }
            DatabaseFault::HeavyQueries => {
                harness.events.count("heavy queries for a while");
                run_heavy_queries(harness, duration);
            }
            DatabaseFault::LockedRows => {
                harness.events.count("rows locked for a while");
                lock_rows(harness, duration * 2);
            }
        }
    }
}

fn restart(harness: &ChaosHarness, mode: StopMode, duration: Duration) {
    harness.postgres.stop(mode);
    harness.stop_faults.sleep(duration);
    harness.postgres.start_again();
}

fn refuse_connections(harness: &ChaosHarness, duration: Duration) {
    harness.postgres.refuse_connections();
    harness.stop_faults.sleep(duration);
    harness.postgres.accept_connections();
}

/// Takes every connection that the instances may have.
fn exhaust_connections(harness: &ChaosHarness, duration: Duration) {
    harness.postgres.terminate_connections();
    let mut taken = Vec::new();
    while let Ok(connection) = harness.postgres.connect() {
        taken.push(connection);
    }
    harness.stop_faults.sleep(duration);
}

/// Holds a transaction open, so that vacuum cannot remove the row versions that it sees.
fn hold_transaction_open(harness: &ChaosHarness, duration: Duration) {
    let mut connection = harness.postgres.connect_as_superuser().unwrap();
    connection
        .batch_execute("begin isolation level repeatable read; select count(*) from batches")
        .unwrap();
    harness.stop_faults.sleep(duration);
}

/// Locks some services and lanes, for longer than the instances wait for a lock, or shorter.
fn lock_rows(harness: &ChaosHarness, duration: Duration) {
    let mut connection = harness.postgres.connect_as_superuser().unwrap();
    connection
        .batch_execute(
            "begin;
             select from services order by random() limit 2 for update skip locked;
             select from lanes order by random() limit 2 for update skip locked",
        )
        .unwrap();
    harness.stop_faults.sleep(duration);
}

/// Runs reports over all batches again and again.
fn run_heavy_queries(harness: &ChaosHarness, duration: Duration) {
    let mut readers: Vec<PgConnection> =
        (0..4).map(|_| harness.postgres.connect_as_superuser().unwrap()).collect();
    let report = format!(
        "set statement_timeout = {}; do $$ begin loop
             perform count(*), sum(length(p.serialized_batch))
             from batches b join batch_payloads p on p.batch_seq = b.seq
             group by b.dlt_status order by random();
         end loop; end $$",
        duration.as_millis().max(1)
    );
    std::thread::scope(|scope| {
        for reader in &mut readers {
            // It ends with an error, because it exceeds its statement timeout.
            scope.spawn(|| reader.batch_execute(&report).is_err());
        }
    });
}
