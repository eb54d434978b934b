//! Services that stand still.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::{BatchState, LedgerStatus};
use grid_batch_poller::ShutdownHandle;
use grid_batch_test_support::wait::wait_until;

use crate::support::*;

#[test]
fn service_whose_batch_does_not_end_is_counted() {
    let store = Store::new();
    store.add("a", 0, BatchState::Pending, SECOND);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Pending));
    let running = run(builder(&store, &ledger));
    wait_until_handled(&store, &ledger, 1);
    assert_eq!(running.stats().stalled_services, 0);
    for _ in 0..3 {
        let requests = ledger.requests.get().len();
        store.clock.advance(Duration::from_mins(1));
        wait_until_handled(&store, &ledger, requests + 1);
    }
    let counters = running.counters();
    wait_until("the service is counted", || counters.read().stalled_services == 1);
    running.wait_for_shutdown().unwrap();
}

/// Waits for this many requests and until their replies are written: for four more reads of the store, because handling
/// takes at most two.
fn wait_until_handled(store: &Store, ledger: &Ledger, requests: usize) {
    ledger.wait_for(requests);
    ledger.in_flight.wait_until(|(now, _)| *now == 0);
    let reads = store.reads_at.get().len();
    store.reads_at.wait_until(|paces| paces.len() >= reads + 4);
}
