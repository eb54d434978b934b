use std::time::Instant;

use grid_batch_test_support::{batches::SignedBatch, wait::wait_until};

use super::group::{EXPIRY_1, EXPIRY_2, InstanceGroup, SCHEDULING_SLACK, measure_until};

const SERVICES: usize = 20;

#[test]
fn second_instance_claims_nothing_while_the_first_runs() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let before = group.claims();

    let second = group.start("second");
    second.submit(&group.batches(1));
    let all = [group.batches(0), group.batches(1)].concat();
    group.harness.wait_until_all_committed(&all);
    let lease_end = || group.active_runs("second").first().map(|run| run.expiry_1);
    let lease_end_before = lease_end().unwrap();
    let expiry_1 = i64::try_from(EXPIRY_1.as_micros()).unwrap();
    wait_until("the second instance has run for one expiry", || {
        lease_end() > Some(lease_end_before + expiry_1)
    });
    assert_eq!(group.claims(), before);
    first.stop();
    second.stop();
}

#[test]
fn graceful_stop_hands_services_over_within_a_second() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let second = group.start("second");
    wait_until("the second instance has a lease", || !group.active_runs("second").is_empty());

    first.stop();
    let description = "the services of a stopped instance are taken over";
    let took =
        measure_until(description, Instant::now(), || group.claimed_by("second") == SERVICES);
    assert!(took.as_secs() < 1, "{took:?}");
    second.submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    second.stop();
}

#[test]
fn killed_instance_loses_idle_services_before_busy_ones() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let second = group.start("second");
    wait_until("the second instance has a lease", || !group.active_runs("second").is_empty());

    let batches = group.batches(1);
    let (busy, idle) = batches.split_at(SERVICES / 4);
    group.submit_to_frozen_ledger(&first, busy);
    first.process.kill();
    let killed = Instant::now();
    let description = "the idle services of a killed instance are taken over";
    let took = measure_until(description, killed, || group.claimed_by("second") == idle.len());
    assert!(took < EXPIRY_1 + SCHEDULING_SLACK, "{took:?}");
    let description = "the busy services of a killed instance are taken over";
    let took = measure_until(description, killed, || group.claimed_by("second") == SERVICES);
    assert!(EXPIRY_1 < took && took < EXPIRY_2 + SCHEDULING_SLACK, "{took:?}");

    group.harness.ledger.thaw();
    second.submit(idle);
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    let is_received_once =
        |batch: &SignedBatch| group.harness.ledger.times_received(&batch.batch_id) == 1;
    assert!(busy.iter().all(is_received_once), "a batch was sent again without evidence");
    second.stop();
}
