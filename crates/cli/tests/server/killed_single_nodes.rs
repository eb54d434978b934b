//! Kills of the only node that is known of a Scabbard circuit.

use std::time::{Duration, Instant};

use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_test_support::{
    batches::{SignedBatch, batch_ids, signed_batches},
    wait::wait_until,
};

use crate::harness::{BatchHarness, count_in_state};

/// Much longer than a batch waits for anything else.
const LONG: Duration = Duration::from_millis(700);

/// A node that has committed fewer batches than one page of its replay shows that the batch under way is
/// lost.
#[test]
fn batches_lost_by_the_only_node_need_no_operator() {
    let harness = BatchHarness::scabbard_with(1, |ledger| ledger.pending_for(LONG));
    let server = harness.serve_with(&[("--poll-hold-after", "1h")]);
    let batches = signed_batches(&harness.services, 3);
    server.submit(&batches);
    let store = harness.store();
    let started = Instant::now();
    for batch in &batches {
        wait_until("the batch is pending", || {
            let stored = store.find(&batch.batch_id).unwrap().remove(0);
            stored.progress.state == BatchState::Pending
        });
        harness.ledger.restart();
        wait_until("the batch is committed", || {
            assert!(store.held_batches(None, 1).unwrap().is_empty());
            let stored = store.find(&batch.batch_id).unwrap().remove(0);
            stored.progress.state == BatchState::Committed
        });
        println!("committed after {:?}", started.elapsed());
    }
    assert_eq!(count_in_state(&store, BatchState::Committed), batches.len());
    let audit = harness.ledger.audit(&batch_ids(&batches));
    assert!(audit.is_clean() && audit.applied == batches.len(), "{audit}");
    let was_sent_again = |batch: &SignedBatch| harness.ledger.times_received(&batch.batch_id) > 1;
    assert!(batches.iter().any(was_sent_again), "no batch was lost");
    server.stop();
}
