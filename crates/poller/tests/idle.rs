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

/// How often a thread wakes up that does nothing else, and whose CPU time is what that of the monitors is compared with.
const WAKE_UP_INTERVAL: Duration = Duration::from_millis(10);

#[test]
fn idle_monitors_use_the_cpu_time_of_a_few_timers() {
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

    let timer = thread::Builder::new().name("timer".to_owned());
    timer
        .spawn(|| {
            loop {
                thread::sleep(WAKE_UP_INTERVAL)
            }
        })
        .unwrap();
    // Two threads of the test, one for I/O, that of the leader, and the timer.
    let (names, before) = threads_and_cpu_time("");
    let (_, timer_before) = threads_and_cpu_time("timer");
    // This is the measured interval, not a wait for a condition.
    thread::sleep(Duration::from_secs(3));
    let (_, after) = threads_and_cpu_time("");
    let (_, timer_after) = threads_and_cpu_time("timer");
    assert_eq!(names.len(), 5, "{names:?}");
    let timer = timer_after - timer_before;
    let used = after - before - timer;
    assert!(used < 8 * timer, "{used:?} for the monitors, {timer:?} for a timer");
    polling.wait_for_shutdown().unwrap();
    listening.wait_for_shutdown().unwrap();
}
