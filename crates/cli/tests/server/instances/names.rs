use std::time::Instant;

use grid_batch_test_support::{
    instance::{Instance, InstanceSlot},
    process::run,
    wait::wait_for,
};

use super::group::{EXPIRY_1, InstanceGroup, SCHEDULING_SLACK, measure_until};

const SERVICES: usize = 10;

/// Starts an instance named `first` again and again until the lease of its earlier run has expired,
/// as a process manager does.
fn restart_first(group: &InstanceGroup) -> Instance {
    let log = group.harness.path().join("restarted.log");
    let slot = InstanceSlot { name: "restarted".to_owned(), log };
    let flags = InstanceGroup::flags("first", &[]);
    wait_for("the name is free", || slot.start(group.harness.command(&flags)))
}

#[test]
fn named_instance_reclaims_its_services_early() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    group.submit_to_frozen_ledger(&first, &group.batches(1));
    let run_before = group.active_runs("first").remove(0).instance_id;
    first.process.kill();
    let killed = Instant::now();

    let restarted = restart_first(&group);
    let description = "a restarted instance has claimed its services again";
    let took = measure_until(description, killed, || {
        let claims = group.claims();
        claims
            .iter()
            .all(|claim| claim.claimant.as_ref().is_some_and(|claimant| *claimant != run_before))
    });
    assert!(took < EXPIRY_1 + SCHEDULING_SLACK, "{took:?}");
    group.harness.ledger.thaw();
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    assert!(restarted.stop().unwrap().success());
}

#[test]
fn second_instance_with_the_same_name_is_rejected() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);

    let flags = InstanceGroup::flags("first", &[("--log", "error")]);
    let output = run(group.harness.command(&flags));
    let message = output.error_message();
    assert!(message.contains("has the name \"first\", at least until"), "{message}");
    assert_eq!(group.claimed_by("first"), SERVICES);
    group.harness.wait_until_all_committed(&group.batches(0));
    first.stop();
}
