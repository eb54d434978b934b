//! Every way to end a monitor writes what is in flight and starts nothing new.

use std::{sync::Arc, time::Duration};

use grid_batch_core::batches::{
    BatchState::{Committed, Pending},
    LedgerStatus,
};
use grid_batch_poller::{MonitorOptions, ShutdownHandle};
use tokio::sync::Semaphore;

use crate::support::*;

/// A monitor with two requests in flight and a third one waiting.
fn run_with_two_in_flight(gate: &Arc<Semaphore>) -> (Store, Arc<Ledger>, Running) {
    let store = Store::with(&["a", "b", "c"]);
    let ledger = Arc::new(Ledger::gated(gate, LedgerStatus::Committed).with_connections(2));
    let running = run(builder(&store, &ledger));
    ledger.in_flight.wait_until(|(now, _)| *now == 2);
    (store, ledger, running)
}

fn closed() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

#[test]
fn shutdown_writes_what_is_in_flight() {
    let gate = closed();
    let (store, ledger, mut running) = run_with_two_in_flight(&gate);
    running.signal_shutdown().unwrap();
    running.signal_shutdown().unwrap();
    gate.add_permits(100);
    running.wait_for_shutdown().unwrap();
    assert_eq!([0, 1, 2].map(|number| store.state(number)), [Committed, Committed, Pending]);
    assert_eq!(ledger.requests.get().len(), 2);
}

#[test]
fn stopped_monitor_runs_again() {
    let gate = closed();
    let (store, _, running) = run_with_two_in_flight(&gate);
    gate.add_permits(100);
    let running = running.stop().unwrap().run().unwrap();
    store.wait_for_state(2, Committed);
    let counters = running.counters();
    running.wait_for_shutdown().unwrap();
    assert_eq!(counters.read().written, 3, "the counters include the earlier run");
}

#[test]
fn dropped_handle_writes_what_is_in_flight() {
    let gate = closed();
    let (store, _, running) = run_with_two_in_flight(&gate);
    drop(running);
    gate.add_permits(100);
    store.wait_for_state(0, Committed);
    store.wait_for_state(1, Committed);
}

#[test]
fn shutdown_waits_no_longer_than_the_drain_limit() {
    let store = Store::with(&["a"]);
    let ledger = Arc::new(Ledger::gated(&closed(), LedgerStatus::Committed));
    let short = MonitorOptions { drain_limit: Duration::from_millis(10), ..options() };
    let running = run(builder(&store, &ledger).with_options(short));
    ledger.wait_for(1);
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), Pending);
}

#[test]
fn shutdown_waits_for_a_failing_store() {
    let store = Store::with(&["a"]);
    let failing = Arc::new(WatchedValue::<usize>::default());
    let times = Arc::clone(&failing);
    store.fail(move |call| match call {
        "groups"
            if times.change(|times| {
                *times += 1;
                *times
            }) < 10 =>
        {
            Err(unavailable())
        }
        _ => Ok(()),
    });
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let running = run(builder(&store, &ledger));
    failing.wait_until(|times| *times > 0);
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), Committed);

    let store = Store::with(&["a"]);
    store.fail(|call| if call == "groups" { Err(unavailable()) } else { Ok(()) });
    let short = MonitorOptions { drain_limit: Duration::from_millis(10), ..options() };
    let running = run(builder(&store, &ledger).with_options(short));
    ledger.wait_for(2);
    running.wait_for_shutdown().unwrap();
    assert_eq!(store.state(0), Pending);
}

#[test]
fn monitor_runs_and_stops_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::with(&["a"]);
        let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
        let running = run(builder(&store, &ledger));
        store.wait_for_state(0, Committed);
        running.stop().unwrap();
    });
}

#[test]
fn monitor_can_be_stopped_and_started_many_times() {
    let store = Store::with(&["a"; 20]);
    let ledger = Arc::new(Ledger::reporting(LedgerStatus::Committed));
    let mut stopped = builder(&store, &ledger).build().unwrap();
    for _ in 0..20 {
        stopped = stopped.run().unwrap().stop().unwrap();
    }
    let running = stopped.run().unwrap();
    (0..20).for_each(|number| store.wait_for_state(number, Committed));
    running.wait_for_shutdown().unwrap();
}
