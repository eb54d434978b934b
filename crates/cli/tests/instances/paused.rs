use grid_batch_core::BatchFilter;
use grid_batch_core::StoredBatch;

use crate::{group::Group, until::until};

const SERVICES: usize = 10;

fn stored(group: &Group) -> Vec<StoredBatch> {
    group.bench.store().list(&BatchFilter::default(), None, 1_000).unwrap()
}

#[test]
fn an_instance_that_paused_changes_nothing_of_its_successors_and_goes_on_with_new_claims() {
    let group = Group::new(SERVICES);
    let first = group.start("first");
    let second = group.start("second");
    first.hand_in(&group.batches(0));
    group.bench.until_all_committed(&group.batches(0));
    until("every service is claimed", || {
        group.claims().iter().all(|claim| claim.claimant.is_some())
    });
    let owner_is_first = group.claimed_by("first") == SERVICES;
    let (paused, successor, paused_name, successor_name) = match owner_is_first {
        true => (first, second, "first", "second"),
        false => (second, first, "second", "first"),
    };
    assert_eq!(group.claimed_by(paused_name), SERVICES);
    let run_before = group.living(paused_name).remove(0).instance_id;

    group.send_into_the_void(&paused, &group.batches(1));
    paused.program.signal("STOP");
    group.until_claimed_by(successor_name, SERVICES);
    group.bench.ledger.thaw();
    successor.hand_in(&group.batches(2));
    let mut all = [group.batches(0), group.batches(1), group.batches(2)].concat();
    group.bench.until_all_committed(&all);
    let (batches, claims) = (stored(&group), group.claims());

    paused.program.signal("CONT");
    until("it lives as another run", || {
        group.living(paused_name).iter().any(|run| run.instance_id != run_before)
    });
    assert_eq!(stored(&group), batches);
    assert_eq!(group.claims(), claims);
    assert!(all.iter().all(|made| group.bench.ledger.times_received(&made.batch_id) == 1));

    successor.stop();
    group.until_claimed_by(paused_name, SERVICES);
    paused.hand_in(&group.batches(3));
    all.extend(group.batches(3));
    group.bench.until_all_committed(&all);
    paused.stop();
}
