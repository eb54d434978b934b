//! Instances that are killed, paused, and stopped, and started again.

use std::{process::Command, thread, time::Duration};

use diesel::{PgConnection, connection::SimpleConnection};
use grid_batch_test_support::{instance::Instance, wait::wait_for};

use crate::{
    harness::ChaosHarness,
    seeded_random::{SeededRandom, ShuffledItems},
    settings::EXPIRY_2,
};

const RESTART_DELAY: Duration = Duration::from_millis(200);

/// Long enough for an instance to start a transaction, and shorter than it waits for a lock.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// What an instance says that is stopped while the database is unavailable for longer than it waits. Its
/// successor finds these batches with a submitter and asks the ledger about them.
const NOT_RECORDED: &str = "not delivered to the group observer";

/// What it says if a job is in a request to that database when the time for the stop is over.
const NOT_ENDED: &str = "did not end within";

#[derive(Debug, Clone, Copy)]
enum InstanceFault {
    Kill,
    Pause,
    PauseInTransaction,
    Stop,
}

/// Starts the first instance of a slot, which may be of an earlier release.
pub fn start_first(harness: &ChaosHarness, slot: usize) -> Instance {
    start(harness, slot, ChaosHarness::first_command)
}

/// Runs faults on the instances of a slot. Returns an instance that serves.
pub fn run(
    harness: &ChaosHarness,
    slot: usize,
    mut random: SeededRandom,
    mut instance: Instance,
) -> Instance {
    let all = [
        InstanceFault::Kill,
        InstanceFault::Pause,
        InstanceFault::Stop,
        InstanceFault::Kill,
        InstanceFault::PauseInTransaction,
    ];
    let first = slot % all.len();
    let mut faults = ShuffledItems::new(&[&all[first..], &all[..first]].concat());
    while harness.stop_faults.sleep(random.millis(800..4_000)) {
        let exit_status = instance.exit_status();
        assert_eq!(exit_status, None, "{} ended without a signal", harness.slots[slot].name);
        let downtime = match faults.next(&mut random) {
            InstanceFault::Pause => {
                let duration = EXPIRY_2 + random.millis(0..1_000);
                harness.events.count("instances paused");
                pause(harness, &instance, duration, None);
                continue;
            }
            InstanceFault::PauseInTransaction => {
                let duration = EXPIRY_2 + random.millis(0..1_000);
                // The database may be unavailable.
                let Some(locks) = lock_services(harness) else { continue };
                harness.events.count("instances paused in a transaction");
                harness.stop_faults.sleep(LOCK_WAIT);
                pause(harness, &instance, duration, Some(locks));
                continue;
            }
            InstanceFault::Kill => {
                harness.events.count("instances killed");
                mark_ended(harness, slot);
                instance.kill();
                random.millis(0..3_000)
            }
            InstanceFault::Stop => {
                harness.events.count("instances stopped");
                mark_ended(harness, slot);
                stop(harness, slot, instance);
                random.millis(0..1_000)
            }
        };
        harness.stop_faults.sleep(downtime);
        instance = start(harness, slot, ChaosHarness::command);
    }
    instance
}

pub fn stop(harness: &ChaosHarness, slot: usize, instance: Instance) {
    let name = &harness.slots[slot].name;
    let status = instance.stop();
    let status =
        status.unwrap_or_else(|threads| panic!("{name} does not end; running threads: {threads}"));
    let log = harness.log_of(slot);
    if !status.success() && [NOT_RECORDED, NOT_ENDED].iter().any(|text| log.contains(text)) {
        harness.events.count("instances stopped while the database was unavailable");
        return;
    }
    assert!(status.success(), "{name} ended with {status} after SIGTERM");
}

/// Starts an instance, again if it ends at once, as a process manager does.
fn start(
    harness: &ChaosHarness,
    slot: usize,
    command: impl Fn(&ChaosHarness) -> Command,
) -> Instance {
    let instance = wait_for("an instance starts", || {
        let instance = harness.slots[slot].start(command(harness));
        if instance.is_none() {
            harness.events.count("failed starts without a database");
            thread::sleep(RESTART_DELAY);
        }
        instance
    });
    harness.addresses.lock().unwrap()[slot] = Some(instance.address);
    harness.events.instance_started();
    instance
}

fn mark_ended(harness: &ChaosHarness, slot: usize) {
    harness.addresses.lock().unwrap()[slot] = None;
    harness.events.instance_ended();
}

/// Locks all services, so that the transactions of instances wait.
fn lock_services(harness: &ChaosHarness) -> Option<PgConnection> {
    let mut connection = harness.postgres.connect_as_superuser().ok()?;
    let lock = "set lock_timeout = '1s'; begin; select from services for update";
    connection.batch_execute(lock).ok()?;
    Some(connection)
}

/// Clients still find a paused instance, and wait until their timeout. Locks that its transactions
/// wait for are released when it is paused: then it has them, and keeps them.
fn pause(
    harness: &ChaosHarness,
    instance: &Instance,
    duration: Duration,
    locks: Option<PgConnection>,
) {
    harness.events.pause(|| {
        instance.signal("STOP");
        drop(locks);
        harness.events.instance_ended();
        harness.stop_faults.sleep(duration);
        instance.signal("CONT");
        harness.events.instance_started();
    });
}
