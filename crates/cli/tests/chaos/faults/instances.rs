//! Instances that are killed, paused, and stopped, and started again.

use std::{thread, time::Duration};

use grid_batch_test_support::{instance::Instance, wait::wait_for};

use crate::{
    harness::ChaosHarness,
    seeded_random::{SeededRandom, ShuffledItems},
    settings::EXPIRY_2,
};

const RESTART_DELAY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy)]
enum InstanceFault {
    Kill,
    Pause,
    Stop,
}

/// Runs faults on the instances of a slot. Returns an instance that serves.
pub fn run(harness: &ChaosHarness, slot: usize, mut random: SeededRandom) -> Instance {
    let all = [InstanceFault::Kill, InstanceFault::Pause, InstanceFault::Stop, InstanceFault::Kill];
    let first = slot % all.len();
    let mut faults = ShuffledItems::new(&[&all[first..], &all[..first]].concat());
    let mut instance = start(harness, slot);
    while harness.stop_faults.sleep(random.millis(800..4_000)) {
        let exit_status = instance.exit_status();
        assert_eq!(exit_status, None, "{} ended without a signal", harness.slots[slot].name);
        let downtime = match faults.next(&mut random) {
            InstanceFault::Pause => {
                let duration = EXPIRY_2 + random.millis(0..1_000);
                pause(harness, &instance, duration);
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
        instance = start(harness, slot);
    }
    instance
}

pub fn stop(harness: &ChaosHarness, slot: usize, instance: Instance) {
    let name = &harness.slots[slot].name;
    let status = instance.stop();
    let status =
        status.unwrap_or_else(|threads| panic!("{name} does not end; running threads: {threads}"));
    assert!(status.success(), "{name} ended with {status} after SIGTERM");
}

/// Starts an instance, again if it ends at once, as a process manager does.
fn start(harness: &ChaosHarness, slot: usize) -> Instance {
    let instance = wait_for("an instance starts", || {
        let instance = harness.slots[slot].start(harness.command());
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

/// Clients still find a paused instance, and wait until their timeout.
fn pause(harness: &ChaosHarness, instance: &Instance, duration: Duration) {
    harness.events.count("instances paused");
    harness.events.pause(|| {
        instance.signal("STOP");
        harness.events.instance_ended();
        harness.stop_faults.sleep(duration);
        instance.signal("CONT");
        harness.events.instance_started();
    });
}
