use std::time::Instant;

use super::group::{InstanceGroup, measure_until};
use crate::harness::BatchServer;

const SERVICES: usize = 300;

/// Waits until each instance has its share of the services, with a tolerance of a tenth.
fn wait_until_even(group: &InstanceGroup, names: &[&str]) {
    let share = SERVICES / names.len();
    let tolerated = share * 9 / 10..=share * 11 / 10;
    let description = format!("{SERVICES} services are shared evenly by {}", names.join(", "));
    measure_until(&description, Instant::now(), || {
        names.iter().all(|name| tolerated.contains(&group.claimed_by(name)))
    });
}

#[test]
fn claims_even_out_when_instances_join_and_leave() {
    let group = InstanceGroup::new(SERVICES);
    let start = |name| group.start_with(name, &[("--claims-share", "true")]);
    let first = start("first");
    first.submit(&group.batches(0));
    wait_until_even(&group, &["first"]);

    let (second, third) = (start("second"), start("third"));
    wait_until_even(&group, &["first", "second", "third"]);
    third.stop();
    wait_until_even(&group, &["first", "second"]);
    let fourth = start("fourth");
    wait_until_even(&group, &["first", "second", "fourth"]);

    fourth.submit(&group.batches(1));
    group.harness.wait_until_all_committed(&[group.batches(0), group.batches(1)].concat());
    [first, second, fourth].into_iter().for_each(BatchServer::stop);
}
