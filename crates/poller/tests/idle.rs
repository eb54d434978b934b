//! Idle monitors use almost no CPU time.
#![cfg(target_os = "linux")]

use std::{future::ready, sync::Arc, thread, time::Duration};

use futures_util::{StreamExt, stream};
use grid_batch_core::mocks::{MockBatchId, MockBatchUpdater, MockLedger, MockPendingBatchStore};
use grid_batch_poller::{
    EventMonitor, EventOptions, Jobs, LedgerStatusReader, MonitorOptions, PollTrigger,
    PollingMonitorBuilder, ShutdownHandle,
};
use grid_batch_test_support::cpu_time::threads_and_cpu_time;

#[test]
fn three_idle_seconds_use_less_than_30_ms_of_cpu() {
    let mut store = MockPendingBatchStore::<MockBatchId>::new();
    store.expect_get_due_batch_ids().returning(|_, _, _| Ok(Some(Vec::new())));
    store.expect_get_pending_batch_ids_of().returning(|_, _| Ok(Some(Vec::new())));
    let mut events = MockLedger::new();
    events.expect_events().returning(|_| Box::pin(ready(Ok(stream::pending().boxed()))));

    let trigger = PollTrigger::new();
    let listening =
        EventMonitor::new(Arc::new(events), trigger.clone(), EventOptions::default()).unwrap();
    listening.follower().follow("a");
    let jobs = Jobs::with_workers(1).unwrap();
    let listening = listening.run(&jobs);
    let polling = PollingMonitorBuilder::new()
        .with_store(store)
        .with_updater(MockBatchUpdater::new())
        .with_reader(Arc::new(LedgerStatusReader(Arc::new(MockLedger::new()))))
        .with_trigger(trigger)
        .with_jobs(&jobs)
        .with_options(MonitorOptions {
            poll_interval: Duration::from_millis(100),
            ..MonitorOptions::default()
        })
        .build()
        .unwrap()
        .run()
        .unwrap();

    // Two threads of the test, one for I/O, and that of the leader.
    let (names, before) = threads_and_cpu_time("");
    // This is the measured interval, not a wait for a condition.
    thread::sleep(Duration::from_secs(3));
    let (_, after) = threads_and_cpu_time("");
    assert_eq!(names.len(), 4, "{names:?}");
    let used = after - before;
    assert!(used < Duration::from_millis(30), "{used:?}");
    polling.wait_for_shutdown().unwrap();
    listening.wait_for_shutdown().unwrap();
}
