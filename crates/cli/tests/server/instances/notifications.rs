use super::group::InstanceGroup;
use crate::harness::BatchServer;

#[test]
fn batch_that_another_instance_stores_is_found_at_once() {
    // A single service is not moved when the instances are balanced.
    const SERVICES: usize = 1;
    let group = InstanceGroup::new(SERVICES);
    let no_scans = [("--testing-queue-poll-interval", "1h")];
    let first = group.start_with("first", &no_scans);
    let mut batches = group.batches(0);
    first.submit(&batches);
    group.harness.wait_until_all_committed(&batches);
    group.wait_until_claimed_by("first", SERVICES);

    let second = group.start_with("second", &no_scans);
    for number in 1..4 {
        second.submit(&group.batches(number));
        batches.extend(group.batches(number));
        group.harness.wait_until_all_committed(&batches);
    }
    assert_eq!(group.claimed_by("first"), SERVICES);
    [first, second].into_iter().for_each(BatchServer::stop);
}
