//! An idle submitter uses almost no CPU time.
#![cfg(target_os = "linux")]

use std::{future::pending, iter, sync::Arc, thread, time::Duration};

use grid_batch_core::GlobalScopeId;
use grid_batch_nodes::NodePool;
use grid_batch_submitter::{
    RunnableSubmitter, ShutdownHandle, SubmitterBuilder, SubmitterOptions,
    mocks::{MockSubmissionSender, MockSubmitterObserver},
};
use grid_batch_test_support::cpu_time::threads_and_cpu_time;

#[test]
fn five_idle_seconds_use_less_than_50_ms_of_cpu() {
    let mut sender = MockSubmissionSender::<GlobalScopeId>::new();
    sender.expect_send().never().returning(|_, _| Box::pin(pending()));
    let running = SubmitterBuilder::new()
        .with_queue(iter::empty())
        .with_sender(Arc::new(sender))
        .with_url_resolver(NodePool::new(["http://ledger"]).resolver())
        .with_observer(Arc::new(MockSubmitterObserver::new()))
        .with_options(SubmitterOptions {
            poll_interval: Duration::from_millis(100),
            worker_threads: 2,
            ..SubmitterOptions::default()
        })
        .build()
        .unwrap()
        .run()
        .unwrap();

    let cpu_time = || ["submit-", "jobs"].map(|prefix| threads_and_cpu_time(prefix).1).iter().sum();
    let before: Duration = cpu_time();
    // The measured interval, not a wait for a condition.
    thread::sleep(Duration::from_secs(5));
    let after: Duration = cpu_time();
    let (names, _) = threads_and_cpu_time("submit-");
    assert_eq!(names, ["submit-leader", "submit-listener"]);
    let used = after - before;
    assert!(used < Duration::from_millis(50), "{used:?}");
    running.wait_for_shutdown().unwrap();
}
