use grid_batch_core::batches::StoredBatch;
use grid_batch_core::queries::BatchFilter;
use grid_batch_ledger_sim::{Fault, When};
use grid_batch_test_support::wait::wait_until;

use super::group::InstanceGroup;

const SERVICES: usize = 10;

fn stored_batches(group: &InstanceGroup) -> Vec<StoredBatch> {
    group.harness.store().list(&BatchFilter::default(), None, 1_000).unwrap()
}

#[test]
fn paused_instance_changes_no_service_of_its_successor() {
    let group = InstanceGroup::new(SERVICES);
    let paused = group.start("first");
    paused.submit(&group.batches(0));
    group.harness.wait_until_all_committed(&group.batches(0));
    assert_eq!(group.claimed_by("first"), SERVICES);
    let run_before = group.active_runs("first").remove(0).instance_id;

    group.submit_to_frozen_ledger(&paused, &group.batches(1));
    paused.process.signal("STOP");
    let successor = group.start("second");
    group.wait_until_claimed_by("second", SERVICES);
    group.harness.ledger.thaw();
    successor.submit(&group.batches(2));
    let mut all = [group.batches(0), group.batches(1), group.batches(2)].concat();
    group.harness.wait_until_all_committed(&all);
    let batches = stored_batches(&group);

    paused.process.signal("CONT");
    wait_until("the paused instance has a new run", || {
        group.active_runs("first").iter().any(|run| run.instance_id != run_before)
    });
    assert_eq!(stored_batches(&group), batches);
    let is_of_paused_run = |claimant: &String| *claimant == run_before;
    assert!(
        !group.claims().iter().filter_map(|claim| claim.claimant.as_ref()).any(is_of_paused_run)
    );
    let is_received_once = |id| group.harness.ledger.times_received(id) == 1;
    assert!(all.iter().all(|batch| is_received_once(&batch.batch_id)));

    successor.stop();
    group.wait_until_claimed_by("first", SERVICES);
    paused.submit(&group.batches(3));
    all.extend(group.batches(3));
    group.harness.wait_until_all_committed(&all);
    paused.stop();
}

/// An instance that was frozen between two attempts to send must notice how late it is.
#[test]
fn paused_instance_sends_no_batch_again() {
    let group = InstanceGroup::new(1);
    group.harness.ledger.inject(Fault::Busy, When::Always);
    let first = group.start("first");
    first.submit(&group.batches(0));
    group.wait_until_claimed_by("first", 1);
    let second = group.start("second");
    let id = group.batches(0)[0].batch_id;
    wait_until("the batch waits to be sent again", || group.harness.ledger.times_received(&id) > 0);
    first.process.signal("STOP");
    group.wait_until_claimed_by("second", 1);
    group.harness.ledger.heal();
    group.harness.decide_held_batches(&group.harness.store());
    group.harness.wait_until_all_committed(&group.batches(0));
    let received = group.harness.ledger.times_received(&id);

    let run_before = group.active_runs("first").pop().map(|run| run.instance_id);
    first.process.signal("CONT");
    wait_until("the paused instance has a new run", || {
        group.active_runs("first").iter().any(|run| Some(&run.instance_id) != run_before.as_ref())
    });
    first.process.wait_for_log("submission ended");
    assert_eq!(group.harness.ledger.times_received(&id), received);
    group.harness.wait_until_all_committed(&group.batches(0));
    second.stop();
    first.stop();
}
