//! Claims with one expiry: `claims.idle_expiry` and `claims.full_expiry` are equal.

use std::time::{Duration, Instant};

use super::group::{InstanceGroup, SCHEDULING_SLACK, measure_until};

const SERVICES: usize = 10;

/// More than twice the limit of a submission, which is three seconds.
const EXPIRY: Duration = Duration::from_secs(7);
const ONE_EXPIRY: &[(&str, &str)] =
    &[("--claims-idle-expiry", "7s"), ("--claims-full-expiry", "7s")];

#[test]
fn killed_instance_loses_all_services_at_its_one_expiry() {
    let group = InstanceGroup::new(SERVICES);
    let first = group.start_with("first", ONE_EXPIRY);
    first.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    group.wait_until_claimed_by("first", SERVICES);
    let second = group.start_with("second", ONE_EXPIRY);
    group.submit_to_frozen_ledger(&first, &group.batches(1));
    let killed = Instant::now();
    first.process.kill();
    group.harness.ledger.thaw();

    let description = "the services of a killed instance are taken over";
    let took = measure_until(description, killed, || group.claimed_by("second") == SERVICES);
    // The lease was renewed up to a quarter of it before the end.
    assert!(took > EXPIRY / 2 && took < EXPIRY + SCHEDULING_SLACK, "{took:?}");
    let all = [group.batches(0), group.batches(1)].concat();
    group.harness.wait_until_all_committed(&all);
    second.stop();
}

#[test]
fn batches_are_submitted_in_order_with_one_expiry() {
    let group = InstanceGroup::new(SERVICES);
    let [first, second] = ["first", "second"].map(|name| group.start_with(name, ONE_EXPIRY));
    let batches: Vec<_> = (0..5).flat_map(|number| group.batches(number)).collect();
    first.submit(&batches);
    group.harness.wait_until_all_committed(&batches);
    first.stop();
    second.stop();
}
